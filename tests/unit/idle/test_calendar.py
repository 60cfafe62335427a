"""Quiet or up: local days, midnight, changes of the clock, and which window wins."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pytest

from firstbell.capacity.idle_policy import IdlePolicy, Window
from firstbell.errors import ConfigurationError
from firstbell.idle.calendar import hours_at

if TYPE_CHECKING:
    from collections.abc import Iterable

MON, TUE, WED, THU, FRI, SAT, SUN = range(7)
SCHOOL_DAYS = (MON, TUE, WED, THU, FRI)


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def hour(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def weekly(begin: str, end: str, *days: int) -> Window:
    return Window(hour(begin), hour(end), weekdays=days or tuple(range(7)))


def dated(day: str, begin: str, end: str) -> Window:
    return Window(hour(begin), hour(end), dates=(date.fromisoformat(day),))


def policy(*quiet: Window, timezone: str = "Europe/Berlin", **more: tuple[Window, ...]) -> IdlePolicy:
    return IdlePolicy(timezone=timezone, quiet=quiet, **more)  # type: ignore[arg-type]


def quiet(rules: IdlePolicy, *moments: str) -> list[bool]:
    return [hours_at(rules, at(moment)).quiet for moment in moments]


def test_case_55_the_weekday_is_the_schools_not_utcs() -> None:
    rules = policy(
        weekly("00:00", "06:30", *SCHOOL_DAYS),
        weekly("19:30", "00:00", *SCHOOL_DAYS),
        weekly("00:00", "00:00", SAT, SUN),
        timezone="Pacific/Auckland",
    )
    assert quiet(rules, "2018-11-04T17:29Z", "2018-11-04T17:30Z", "2018-11-05T06:29Z", "2018-11-05T06:30Z") == [
        True,  # still Monday 06:29 in Auckland
        False,
        False,
        True,
    ]


def test_case_56_days_may_pass_the_end_of_the_week() -> None:
    rules = policy(weekly("22:00", "23:00", SUN, MON, TUE, WED, THU, FRI), timezone="UTC")
    by_day = [f"2026-06-0{day}T22:30Z" for day in range(1, 8)]  # 1 June 2026 is a Monday
    assert quiet(rules, *by_day) == [True, True, True, True, True, False, True]


def test_case_56_a_window_may_pass_midnight_and_belongs_to_the_day_that_it_begins_on() -> None:
    rules = policy(weekly("22:00", "06:00", FRI), timezone="UTC")
    moments = ("2026-06-05T21:59Z", "2026-06-05T22:00Z", "2026-06-06T05:59Z", "2026-06-06T06:00Z", "2026-06-06T22:00Z")
    assert quiet(rules, *moments) == [False, True, True, False, False]


def test_case_56_an_end_of_midnight_is_the_end_of_the_day() -> None:
    rules = policy(weekly("19:00", "00:00", MON), timezone="UTC")
    assert quiet(rules, "2026-06-01T18:59Z", "2026-06-01T23:59Z", "2026-06-02T00:00Z") == [False, True, False]


def test_case_56_what_holds_counts_not_what_began_since_the_last_look() -> None:
    rules = policy(weekly("23:59", "07:00"), timezone="UTC")
    assert quiet(rules, "2026-06-01T23:55Z", "2026-06-02T00:00Z", "2026-06-02T00:05Z") == [False, True, True]


def test_case_58_seven_in_new_york_is_another_hour_of_utc_after_the_change() -> None:
    rules = policy(weekly("19:00", "07:00"), timezone="America/New_York")
    assert quiet(rules, "2026-03-07T11:59Z", "2026-03-07T12:00Z") == [True, False]
    assert quiet(rules, "2026-03-08T10:59Z", "2026-03-08T11:00Z") == [True, False]


def test_case_58_a_missing_hour_is_made_up_for_as_soon_as_the_clock_has_passed_it() -> None:
    rules = policy(weekly("02:30", "05:00"), timezone="America/New_York")
    assert quiet(rules, "2026-03-08T06:59Z", "2026-03-08T07:00Z", "2026-03-08T08:59Z", "2026-03-08T09:00Z") == [
        False,
        True,
        True,
        False,
    ]


def test_case_58_a_window_that_ends_in_the_repeated_hour_ends_once() -> None:
    rules = policy(weekly("20:00", "01:30"), timezone="America/New_York")
    # 05:30Z is the first 01:30 of 1 November 2026; 06:00Z puts the clock back to 01:00.
    moments = ("2026-11-01T05:29Z", "2026-11-01T05:30Z", "2026-11-01T06:00Z", "2026-11-01T06:29Z", "2026-11-01T07:00Z")
    assert quiet(rules, *moments) == [True, False, False, False, False]


def test_case_58_a_window_that_begins_in_the_repeated_hour_begins_once() -> None:
    rules = policy(weekly("01:30", "04:00"), timezone="America/New_York")
    assert quiet(rules, "2026-11-01T05:29Z", "2026-11-01T05:30Z", "2026-11-01T06:10Z", "2026-11-01T08:59Z") == [
        False,
        True,
        True,
        True,
    ]


def test_a_repeated_half_hour_counts_like_a_repeated_hour() -> None:
    rules = policy(weekly("01:45", "03:00"), timezone="Australia/Lord_Howe")
    # 15:00Z puts the clock from 02:00 back to 01:30.
    assert quiet(rules, "2026-04-04T14:44Z", "2026-04-04T14:45Z", "2026-04-04T15:10Z", "2026-04-04T16:30Z") == [
        False,
        True,
        True,
        False,
    ]


def test_a_day_that_a_zone_left_out_has_no_window_and_disturbs_none() -> None:
    rules = policy(weekly("22:00", "06:00", FRI), timezone="Pacific/Apia")  # 30 December 2011, a Friday, was left out
    assert quiet(rules, "2011-12-30T09:59Z", "2011-12-30T10:00Z", "2011-12-30T16:00Z") == [False, True, False]


def test_case_58_an_unknown_zone_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="'Europe/Berln' is not known"):
        hours_at(policy(weekly("19:00", "07:00"), timezone="Europe/Berln"), 0.0)


@pytest.mark.parametrize(
    ("moment", "rule", "is_quiet"),
    [
        ("2026-12-21T20:00+01:00", "quiet", True),
        ("2026-12-21T12:00+01:00", "otherwise", False),
        ("2026-12-22T20:00+01:00", "up", False),
        ("2026-12-24T12:00+01:00", "holiday", True),
        ("2026-12-29T20:00+01:00", "holiday", True),
        ("2026-12-24T23:30+01:00", "event", False),
        ("2026-12-25T00:30+01:00", "event", False),
        ("2026-12-25T01:00+01:00", "quiet", True),
    ],
)
def test_dated_wins_over_weekly_and_up_over_quiet(moment: str, rule: str, is_quiet: bool) -> None:
    rules = IdlePolicy(
        timezone="Europe/Berlin",
        quiet=(weekly("19:00", "07:00"),),
        up=(weekly("19:00", "22:00", TUE),),
        holidays=(date(2026, 12, 24), date(2026, 12, 29)),
        events=(dated("2026-12-24", "23:00", "01:00"),),
    )
    hours = hours_at(rules, at(moment))
    assert (hours.rule, hours.quiet) == (rule, is_quiet)


YEAR = at("2026-01-01T00:00Z")
MINUTES = 365 * 24 * 60
PASSED_BEFORE = 1  # day that is painted before the year, for zones behind UTC and windows that began the evening before

CLOCKS: dict[str, list[tuple[str, float]]] = {
    # As the law has it: (from when, hours ahead of UTC). No time zone database is asked.
    "America/New_York": [("2026-01-01T00:00Z", -5), ("2026-03-08T07:00Z", -4), ("2026-11-01T06:00Z", -5)],
    "Europe/Berlin": [("2026-01-01T00:00Z", 1), ("2026-03-29T01:00Z", 2), ("2026-10-25T01:00Z", 1)],
    "Pacific/Auckland": [("2026-01-01T00:00Z", 13), ("2026-04-04T14:00Z", 12), ("2026-09-26T14:00Z", 13)],
    "Australia/Lord_Howe": [("2026-01-01T00:00Z", 11), ("2026-04-04T15:00Z", 10.5), ("2026-10-03T15:30Z", 11)],
    "Asia/Kolkata": [("2026-01-01T00:00Z", 5.5)],
}

QUIET = [("19:00", "07:00", SCHOOL_DAYS), ("12:15", "00:00", (SAT,)), ("02:30", "01:45", (SUN,))]
UP = [("21:00", "22:30", (WED,)), ("01:40", "02:10", (SAT, SUN)), ("23:30", "00:30", (THU,))]
HOLIDAYS = ["2026-03-08", "2026-04-05", "2026-10-25", "2026-11-01", "2026-12-31"]
EVENTS = [("2026-03-29", "01:30", "02:30"), ("2026-09-27", "20:00", "02:15"), ("2026-10-03", "22:00", "03:00")]


def painted(rules: Iterable[tuple[int, int, bool]]) -> bytearray:
    """Local minute -> quiet, painted over a blank calendar, the rule that wins last."""
    calendar = bytearray((365 + 3) * 1440)
    for begin, end, is_quiet in rules:
        calendar[begin:end] = bytes([is_quiet]) * (end - begin)
    return calendar


def year_of_rules() -> Iterable[tuple[int, int, bool]]:
    """(first local minute, minute after the last, quiet) of each window of the year, the weakest rules first."""
    first_day = date(2025, 12, 31).toordinal()

    def spans(day: int, begin: str, end: str) -> tuple[int, int]:
        start, stop = day * 1440 + hour(begin), day * 1440 + hour(end)
        return start, stop if stop > start else stop + 1440

    for kind, is_quiet in ((QUIET, True), (UP, False)):
        for begin, end, days in kind:
            for day in range(367):
                if (first_day + day - 1) % 7 in days:  # ordinal 1 was a Monday
                    yield (*spans(day, begin, end), is_quiet)
    for text in HOLIDAYS:
        yield (*spans(date.fromisoformat(text).toordinal() - first_day, "00:00", "00:00"), True)
    for text, begin, end in EVENTS:
        yield (*spans(date.fromisoformat(text).toordinal() - first_day, begin, end), False)


@pytest.mark.parametrize("zone", CLOCKS)
def test_a_year_of_minutes_agrees_with_a_calendar_painted_by_hand(zone: str) -> None:
    """Case 58 for every minute of 2026, both changes of the clock included."""
    rules = IdlePolicy(
        timezone=zone,
        quiet=tuple(weekly(begin, end, *days) for begin, end, days in QUIET),
        up=tuple(weekly(begin, end, *days) for begin, end, days in UP),
        holidays=tuple(date.fromisoformat(day) for day in HOLIDAYS),
        events=tuple(dated(day, begin, end) for day, begin, end in EVENTS),
    )
    calendar = painted(year_of_rules())
    since = [int((at(change) - YEAR) // 60) for change, _ in CLOCKS[zone]]
    shown, wrong = 0, []
    for (_, ahead), first, last in zip(CLOCKS[zone], since, [*since[1:], MINUTES], strict=True):
        for minute in range(first, last):
            shown = max(shown, minute + int(ahead * 60) + PASSED_BEFORE * 1440)  # a clock that was put back waits
            if hours_at(rules, YEAR + minute * 60).quiet != bool(calendar[shown]):
                wrong.append(minute)
    assert not wrong, f"{len(wrong)} minutes, the first {datetime.fromtimestamp(YEAR + wrong[0] * 60, UTC)}"
