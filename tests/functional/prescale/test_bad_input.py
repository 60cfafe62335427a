"""Whatever a portal sends wrong is answered with Signal Rejected, which names it, and is never tried again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstbell.errors import Conflict
from firstbell.prescale.signals import DemandSignal, parse_signal
from firstbell.settings import Portal
from tests.fakes.school import EIGHT, PLACES, TEACHER, School, pool

VALID = {"region": "us-west-2", "pods": 2}
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
"""https://github.com/kubernetes/apimachinery/blob/master/pkg/util/validation/validation.go"""

WRONG: dict[str, list[Any]] = {
    "region": [None, "", 7, [], {}, True, "mars-north-1", "eu-west-1", "us-west-2 ", "r" * 200],
    "pods": [None, "30", 30.5, 30.0, True, 0, -1, 10_001, 10**30, [30], {}],
    "reference": ["", " ", 7, True, [], "-x", "x-", "a/b", "a b", "bio 101", "bio101\n", "é", "x" * 64, "x" * 5000],
    "revision": ["3", 3.5, 3.0, True, -1, 2**53, 10**400, []],
    "cluster": ["", 7, [], "isle", "hub2"],
    "pool": ["", 7, [], "nowhere", "Notebook"],
    "pod": ["500m", 7, [], True],
    "pod.cpu": ["", "half", "-1", "1e3000000000", "1 ", "٣", True, [], {}, "1" * 100, "5 00m"],
    "pod.memory": ["", "2GB", "-2Gi", "Gi", 2.5, True, [], "99Ei", "1e400"],
    "pod.gpu": ["1", 1.5, -1, 17, True, []],
    "starts_at": [
        "",
        7,
        True,
        "tomorrow",
        "2026-12-01",
        "2026-12-01T09:00",
        "2026-12-01T09:00:00",
        "2026-12-01T09:00:00+2",
        "2026-13-01T09:00:00Z",
        "2026-02-30T09:00:00Z",
        "2026-12-01T25:00:00Z",
        "2026-12-01T09:00:00+25:00",
        "2027-12-31T09:00:00Z",
        "9999-12-31T23:59:59Z",
    ],
    "ends_at": [
        "",
        7,
        "2026-12-01T09:00:00",
        "2026-12-01T07:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-12-03T09:00:00Z",
    ],
    "hold_minutes": ["60", 1.5, 0, -5, 10_081, True, []],
}


def detail_with(path: str, value: Any) -> dict[str, Any]:
    """A valid detail in which one field is wrong."""
    outer, _, inner = path.partition(".")
    return VALID | {outer: {inner: value} if inner else value}


def rejected(school: School, event: dict[str, Any]) -> dict[str, str]:
    """Delivers the event; field -> problem of the one Signal Rejected that answers it."""
    school.deliver(event)
    (answer,) = school.said("Signal Rejected")
    assert not school.ledger.reservations
    assert school.desired() == 0
    assert not school.said("Capacity Requested")
    assert school.telemetry.total("SignalsRejected") == 1
    json.dumps(answer)
    return {problem["field"]: problem["problem"] for problem in answer["problems"]}


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, values in WRONG.items() for value in values])
def test_a_field_that_is_wrong_is_named_with_what_is_allowed(path: str, value: Any) -> None:
    school = School()
    problems = rejected(school, school.event(detail_with(path, value)))
    assert set(problems) == {path}
    assert re.search(r"\ballowed\b|\bserves\b|\bmay reserve\b", problems[path])
    assert len(problems[path]) < 400


@pytest.mark.parametrize("path", [path for path in WRONG if path not in ("region", "pods")])
def test_null_is_as_good_as_absent_where_a_field_is_optional(path: str) -> None:
    school = School()
    school.deliver(school.event(detail_with(path, None)))
    assert not school.said("Signal Rejected")
    assert school.desired() == 1


@pytest.mark.parametrize("field", ["region", "pods"])
def test_what_is_required_is_named_when_it_is_missing(field: str) -> None:
    school = School()
    problems = rejected(school, school.event({name: value for name, value in VALID.items() if name != field}))
    assert problems[field].startswith("is missing; allowed: ")


@pytest.mark.parametrize("detail", [None, [], ["pods"], "pods", 7, True, 1.5])
def test_a_detail_that_is_no_object_is_rejected(detail: Any) -> None:
    school = School()
    event = school.event(detail)
    assert "a JSON object" in rejected(school, event)["detail"]
    assert school.said("Signal Rejected")[0]["reference"] == event["id"]


def test_everything_that_is_wrong_is_named_at_once() -> None:
    school = School()
    wrong = {"region": 7, "pods": 0, "reference": "a b", "pod": {"cpu": [], "gpu": -1}, "ends_at": "soon"}
    assert set(rejected(school, school.event(wrong))) == {
        "region",
        "pods",
        "reference",
        "pod.cpu",
        "pod.gpu",
        "ends_at",
    }


def test_what_only_the_clock_and_the_operators_file_can_tell_is_named_at_once_too() -> None:
    school = School()
    wrong = {
        "region": "mars-north-1",
        "cluster": "isle",
        "pods": 2,
        "pool": "nowhere",
        "pod": {"cpu": "half", "memory": "2GB"},
        "starts_at": "2026-11-30T09:00:00Z",
        "ends_at": "2026-11-30T10:00:00Z",
    }
    problems = rejected(school, school.event(wrong))
    assert set(problems) == {"region", "cluster", "pool", "pod.cpu", "pod.memory", "ends_at"}
    assert "expired" in problems["ends_at"]
    assert "eu-west-1, us-west-2" in problems["region"]


def test_an_end_before_the_start_is_rejected() -> None:
    school = School()
    window = {"starts_at": "2026-12-01T10:00:00+02:00", "ends_at": "2026-12-01T09:59:59+02:00"}
    assert rejected(school, school.event(VALID | window))["ends_at"].startswith("is not after starts_at")


def test_a_replayed_signal_that_is_over_buys_nothing() -> None:
    school = School()
    event = school.signal(2)
    school.minutes(24 * 60)
    assert "expired" in rejected(school, event)["ends_at"]


@pytest.mark.parametrize(
    "sender", [("999922223333", TEACHER[1]), (TEACHER[0], "edu.forged"), (TEACHER[0], "firstbell")]
)
@pytest.mark.parametrize("detail_type", ["Demand Signal", "Demand Cancelled"])
def test_an_account_or_source_that_is_not_listed_is_rejected(sender: tuple[str, str], detail_type: str) -> None:
    school = School()
    account, source = sender
    detail = VALID | {"reference": "bio101"}
    event = school.event(detail, detail_type=detail_type, account=account, source=source)
    assert f"{TEACHER[1]} from account {TEACHER[0]}" in rejected(school, event)["source"]


@pytest.mark.parametrize(
    ("detail", "field"),
    [
        ({}, "reference"),
        ({"reference": 7}, "reference"),
        ({"reference": "a b"}, "reference"),
        ({"reference": "bio101", "region": "mars-north-1"}, "region"),
        ({"reference": "bio101", "region": "eu-west-1"}, "region"),
        ({"reference": "bio101", "cluster": "isle"}, "cluster"),
        ([], "detail"),
    ],
)
def test_a_cancellation_is_held_to_the_same(detail: Any, field: str) -> None:
    school = School()
    assert set(rejected(school, school.event(detail, detail_type="Demand Cancelled"))) == {field}


@pytest.mark.parametrize("detail_type", ["Demand Signal", "Demand Cancelled"])
def test_a_reference_of_another_portal_can_be_neither_corrected_nor_cancelled(detail_type: str) -> None:
    school = School()
    library = Portal("library", "444455556666", "edu.library", max_pods=100, max_reserved_hours=24)
    school.settings = replace(school.settings, portals=(*school.settings.portals, library))
    school.deliver(school.signal(PLACES))
    school.minutes(1)
    event = school.event(
        VALID | {"reference": "bio101"}, detail_type=detail_type, account=library.account, source=library.source
    )
    school.deliver(event)
    (answer,) = school.said("Signal Rejected")
    assert "which another portal uses" in answer["problems"][0]["problem"]
    (kept,) = school.ledger.read().reservations
    assert (kept.pods, kept.portal, kept.cancelled_at) == (PLACES, "teachers", 0)


def test_an_unknown_detail_type_is_rejected() -> None:
    school = School()
    assert (
        "Demand Signal, Demand Cancelled" in rejected(school, school.event(VALID, detail_type="Demand"))["detail-type"]
    )


@pytest.mark.parametrize(
    ("caps", "signal", "field"),
    [({"max_pods": 5}, {"pods": 6}, "pods"), ({}, {"hold_minutes": 24 * 60 + 1}, "ends_at")],
)
def test_what_is_beyond_a_portals_caps_is_rejected_by_name(
    caps: dict[str, Any], signal: dict[str, Any], field: str
) -> None:
    problems = rejected(school := School(**caps), school.event(VALID | signal))
    assert "portal teachers may reserve" in problems[field]


def test_a_correction_does_not_count_against_itself_under_a_cap() -> None:
    school = School(max_pods=10)
    school.deliver(school.signal(8))
    school.minutes(1)
    school.deliver(school.signal(10))
    assert not school.said("Signal Rejected")
    assert [r.pods for r in school.ledger.read().reservations] == [10]


def test_two_signals_that_each_fit_under_a_cap_alone_are_decided_one_after_the_other() -> None:
    school = School(max_pods=10)
    school.deliver(school.signal(6, "bio101"))
    school.faults.fail("ledger.store", Conflict("the portal stored something since"))
    school.deliver(school.signal(6, "chem202"))
    assert [event["reference"] for event in school.said("Signal Rejected")] == ["chem202"]


def test_unknown_fields_are_ignored_and_named_once_in_the_log() -> None:
    school = School()
    named: list[list[str]] = []
    school.telemetry.log = _Recorder(named)  # type: ignore[assignment]
    unknown = {f"x{n:03}": n for n in range(100)}
    school.deliver(school.event(VALID | {"teacher": "Ms. B", "pod": {"cpu": "100m", "disk": 1}} | unknown))
    assert school.desired() == 1
    (fields,) = named
    assert fields[:2] == ["pod.disk", "teacher"]
    assert len(fields) == 20


class _Recorder:
    def __init__(self, named: list[list[str]]) -> None:
        self._named = named

    def info(self, *_: Any, **__: Any) -> None: ...

    def warning(self, message: str, **fields: Any) -> None:
        if message == "unknown fields are ignored":
            self._named.append(fields["fields"])


def test_a_huge_field_is_shown_short() -> None:
    school = School()
    problems = rejected(school, school.event(VALID | {"pool": ["x" * 200_000]}))
    assert len(problems["pool"]) < 200
    assert len(json.dumps(school.said("Signal Rejected"))) < 1000


@pytest.mark.parametrize("reference", ["b", "bio101-2026-12-01", "A.b_c-9", "0", "x" * 63])
def test_references_are_kept_as_pods_carry_them_in_a_label(reference: str) -> None:
    school = School()
    school.deliver(school.signal(1, reference))
    assert list(school.ledger.reservations) == [reference]
    school.student(reference)
    school.grow()
    school.schedule()
    school.tick()
    (ready,) = school.said("Capacity Ready")
    assert (ready["reference"], ready["arrived_pods"]) == (reference, 1)


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=70))
def test_a_reference_is_accepted_if_and_only_if_it_is_a_label_value(reference: str) -> None:
    accepted = isinstance(parse_signal(VALID | {"reference": reference}), DemandSignal)
    assert accepted == (len(reference) <= 63 and bool(LABEL_VALUE.fullmatch(reference)))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.fixed_dictionaries({}, optional={path.partition(".")[0]: json_values for path in WRONG}))
def test_no_detail_whatever_ends_in_anything_but_an_answer(detail: dict[str, Any]) -> None:
    school = School(pools=(pool(),))
    school.now = EIGHT
    school.deliver(school.event(detail))
    answered = {event["reference"] for kind in ("Signal Rejected", "Capacity Requested") for event in school.said(kind)}
    waits = [r for r in school.ledger.read().reservations if r.starts_at > school.now]
    assert len(answered) + len(waits) == 1
