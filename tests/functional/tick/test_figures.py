"""How a pool stands, in the figures that the tick leaves."""

from __future__ import annotations

import pytest

from firstbell.errors import ClusterUnreachable, RetryLater
from tests.fakes.school import PLACES, RecordedTelemetry, School


def figures(school: School) -> dict[str, float]:
    """The last value of each metric."""
    return {name: value for name, value, _ in school.telemetry.values}


def test_a_tick_says_what_is_wanted_what_is_there_and_what_is_free() -> None:
    school = School()
    school.deliver(school.signal(PLACES + 2))
    school.grow()
    for _ in range(3):
        school.student("bio101")
    school.schedule()
    school.tick()
    seen = figures(school)
    assert seen["OutstandingPods"] == PLACES - 1
    assert seen["DesiredUnits"] == seen["UsableNodes"] == 2
    assert seen["HeadroomPods"] == 2 * PLACES - 3
    assert seen["HeadroomUnknown"] == seen["NodesNeverJoined"] == 0


def test_an_instance_that_never_joined_is_counted() -> None:
    school = School()
    school.deliver(school.signal(PLACES))
    school.launch()
    for _ in range(2):
        school.tick()
        school.minutes(11)
    school.tick()
    assert figures(school)["NodesNeverJoined"] == 1


def test_what_cannot_be_seen_is_a_gap_and_not_a_zero() -> None:
    """case 62: an error never reads as "no nodes"."""
    school = School()
    school.deliver(school.signal(PLACES))
    school.telemetry.values.clear()
    school.faults.fail("nodes", ClusterUnreachable("timed out"), times=9)
    school.tick()
    seen = figures(school)
    assert seen["HeadroomUnknown"] == 1
    assert not {"UsableNodes", "HeadroomPods", "NodesNeverJoined"} & set(seen)


@pytest.mark.parametrize(("operation", "counted"), [("dynamodb:Query", 1), ("autoscaling:SetDesiredCapacity", 0)])
def test_a_run_that_the_ledger_ends_is_counted_and_still_fails(operation: str, counted: int) -> None:
    telemetry = RecordedTelemetry()
    error = RetryLater(f"{operation}: slow down")
    error.operation = operation
    with pytest.raises(RetryLater), telemetry.counting_ledger_errors():
        raise error
    assert telemetry.total("LedgerErrors") == counted
