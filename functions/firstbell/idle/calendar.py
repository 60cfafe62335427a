"""Whether a pool is in a quiet window. Pure, and level-triggered: it asks what holds now, never what has passed since.

Windows are read off the zone's own clock, so weekdays and hours are the school's (case 55). A clock that is put back
shows an hour twice; here it stands still until it shows new times, so that nothing begins or ends twice in a night. A
clock that is put forward skips times; a window that begins at one of them begins when the clock has passed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from firstbell.errors import ConfigurationError

if TYPE_CHECKING:
    from firstbell.capacity.idle_policy import IdlePolicy, Window

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Hours:
    """What the calendar says, and which of its rules said it."""

    quiet: bool
    rule: str
    """`event`, `holiday`, `up`, `quiet`, or `otherwise` where no window holds."""


def hours_at(policy: IdlePolicy, now: float) -> Hours:
    """Quiet or up at `now` (Unix seconds). What is dated wins over what is weekly, and then up over quiet.

    Raises ConfigurationError for a zone that this environment does not know.
    """
    clock = local_clock(_zone(policy.timezone), now)
    day, minute = clock.date(), clock.hour * 60 + clock.minute
    if _any_holds(policy.events, day, minute):
        return Hours(quiet=False, rule="event")
    if day in policy.holidays:
        return Hours(quiet=True, rule="holiday")
    if _any_holds(policy.up, day, minute):
        return Hours(quiet=False, rule="up")
    if _any_holds(policy.quiet, day, minute):
        return Hours(quiet=True, rule="quiet")
    return Hours(quiet=False, rule="otherwise")


def local_clock(zone: ZoneInfo, now: float) -> datetime:
    """The latest local time that the zone's clock has shown by `now`, to the second, without its zone."""
    local = datetime.fromtimestamp(int(now), zone)
    if not local.fold:
        return local.replace(tzinfo=None)
    # Shown for the second time: the clock was put back since it was first shown. Find the second before that.
    before, after = int(local.replace(fold=0).timestamp()), int(now)
    offset = datetime.fromtimestamp(before, zone).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return datetime.fromtimestamp(before, zone).replace(tzinfo=None)


def _any_holds(windows: tuple[Window, ...], day: date, minute: int) -> bool:
    for window in windows:
        begin, end = window.begin_minute, window.end_minute
        if begin < end:
            holds = begin <= minute < end and window.begins_on(day)
        elif minute >= begin:
            holds = window.begins_on(day)
        else:
            holds = minute < end and window.begins_on(day - ONE_DAY)
        if holds:
            return True
    return False


@cache
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise ConfigurationError(f"timezone {name!r} is not known; allowed: a name of the IANA database") from error
