"""`firstbell plan`: what would happen, without anything happening."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstbell.errors import ClusterUnreachable
from firstbell.outcomes import rfc3339
from tests.fakes.school import PLACES, School, pool
from tests.functional.cli.desk import WRITES, Desk

INSUFFICIENT = (
    "We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested (us-west-2a)."
)


def planned(desk: Desk, *arguments: str, code: int = 0) -> dict[str, object]:
    """The plan; whatever it says, it has written nothing."""
    desk.school.faults.calls.clear()
    before = (dict(desk.school.ledger.reservations), dict(desk.school.autoscaling.groups))
    document = desk.json("plan", *arguments, code=code)
    assert not desk.calls() & WRITES
    assert before == (desk.school.ledger.reservations, desk.school.autoscaling.groups)
    return document


def test_the_plan_says_what_the_signal_then_does() -> None:
    desk = Desk()
    plan = planned(desk, "--pods", str(3 * PLACES), "--reference", "r")
    assert (plan["decision"], plan["desired_before"], plan["desired_after"]) == ("admitted", 0, 3)
    assert [o["detail_type"] for o in plan["outcomes"]] == ["Capacity Requested"]  # type: ignore[attr-defined]
    desk.run("signal", "--pods", str(3 * PLACES), "--reference", "r")
    assert desk.school.desired() == plan["desired_after"]


def test_the_plan_counts_what_is_reserved_and_the_room_there_is() -> None:
    desk = Desk()
    desk.run("signal", "--pods", str(PLACES), "--reference", "first")
    desk.school.grow()
    plan = planned(desk, "--pods", "1")
    assert (plan["desired_before"], plan["desired_after"]) == (1, 2)
    desk.run("cancel", "first")
    assert planned(desk, "--pods", "1")["desired_after"] == 1


def test_a_later_class_is_planned_for_its_opening() -> None:
    desk = Desk()
    starts = desk.school.now + 3600
    plan = planned(desk, "--pods", "1", "--starts-at", rfc3339(starts))
    assert plan["asked_for_at"] == rfc3339(starts - 300)
    words = desk.run("plan", "--pods", "1", "--starts-at", rfc3339(starts)).stdout
    assert "nothing before" in words
    assert "notebook: desired from 0 to 1" in words


def test_a_signal_that_would_be_refused_ends_with_3() -> None:
    desk = Desk()
    plan = planned(desk, "--pods", "1", "--pool", "gpu", code=3)
    assert plan["decision"] == "refused"
    too_large = planned(desk, "--pods", "1", "--memory", "64Gi", code=3)
    assert [o["detail_type"] for o in too_large["outcomes"]] == ["Signal Rejected"]  # type: ignore[attr-defined]


def test_a_pool_that_cannot_grow_enough_ends_with_4_and_the_remedy() -> None:
    desk = Desk(School(max_size=1))
    planned(desk, "--pods", str(2 * PLACES), code=4)
    words = desk.run("plan", "--pods", str(2 * PLACES)).stdout
    assert f"Capacity Short: {PLACES} pods" in words
    assert "Raise the group's MaxSize" in words


def test_what_a_pool_that_backs_off_passes_on_is_planned_too() -> None:
    desk = Desk(School(pools=(pool(fallback=("spare",)), pool("spare"))))
    desk.run("signal", "--pods", "1", "--reference", "first")
    desk.school.fail_launches(INSUFFICIENT)
    plan = planned(desk, "--pods", str(2 * PLACES), "--reference", "second")
    assert plan["desired_after"] == plan["desired_before"]
    assert plan["fallback"]["spare"]["desired_after"] == 3  # type: ignore[index]
    assert (
        "spare: takes 15 pods, desired from 0 to 3"
        in desk.run("plan", "--pods", str(2 * PLACES), "--reference", "second").stdout
    )


@pytest.mark.parametrize(("brake", "words"), [("pause", "Firstbell is paused"), ("observe", "mode observe")])
def test_a_plan_says_what_keeps_it_from_being_written(brake: str, words: str) -> None:
    desk = Desk(School(pools=(pool(mode="observe" if brake == "observe" else "act"),)))
    if brake == "pause":
        desk.run("pause")
    said = desk.run("plan", "--pods", "1")
    assert f"desired from 0 to 1 (not written: {words}" in said.stdout.replace("the pool is in ", "")


def test_a_cluster_that_cannot_be_read_is_said_and_never_taken_for_empty() -> None:
    desk = Desk()
    desk.run("signal", "--pods", str(PLACES), "--reference", "first")
    desk.school.grow()
    desk.school.faults.fail("nodes", ClusterUnreachable("no answer"), times=9)
    plan = planned(desk, "--pods", "1")
    assert plan["cluster_unseen"] == "no answer"


def test_a_repeat_changes_nothing_and_the_plan_says_so() -> None:
    desk = Desk()
    desk.run("signal", "--pods", "1", "--reference", "r", "--revision", "2")
    desk.school.ledger.reservations["r"] = replace(desk.school.ledger.reservations["r"])
    assert planned(desk, "--pods", "9", "--reference", "r", "--revision", "1")["decision"] == "repeated"
