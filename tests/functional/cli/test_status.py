"""`firstbell status`: what each reservation and pool waits for, in words."""

from __future__ import annotations

from typing import Any

from firstbell.errors import ClusterUnreachable
from firstbell.outcomes import rfc3339
from tests.fakes.school import EIGHT, PLACES, School, pool
from tests.functional.cli.desk import WRITES, Desk

INSUFFICIENT = (
    "We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested (us-west-2a)."
)


def status(desk: Desk) -> dict[str, Any]:
    """The status; asking for it has written nothing."""
    desk.school.faults.calls.clear()
    document = desk.json("status")
    assert not desk.calls() & WRITES
    return document


def reservation(desk: Desk, reference: str = "bio101") -> dict[str, Any]:
    found: dict[str, Any] = next(r for r in status(desk)["reservations"] if r["reference"] == reference)
    return found


def standing(desk: Desk, name: str = "notebook") -> dict[str, Any]:
    found: dict[str, Any] = next(p for p in status(desk)["pools"] if p["pool"] == name)
    return found


def test_a_quiet_school_waits_for_nothing() -> None:
    desk = Desk()
    document = status(desk)
    assert (document["cluster"], document["paused"], document["reservations"]) == ("hub", False, [])
    assert standing(desk)["waits_for"] == "nothing"
    assert "no reservations" in desk.run("status").stdout


def test_a_live_reservation_is_followed_from_launch_to_its_last_pod() -> None:
    desk = Desk()
    desk.school.deliver(desk.school.signal(2 * PLACES))
    assert reservation(desk)["waits_for"] == "room for 14 pods: 2 units not launched yet"
    launched = desk.school.launch()
    assert reservation(desk)["waits_for"] == "room for 14 pods: 2 nodes starting"
    assert standing(desk)["starting_nodes"] == 2
    assert standing(desk)["waits_for"] == "2 nodes to be Ready"
    desk.school.join(launched)
    desk.school.tick()
    desk.school.student("bio101")
    desk.school.schedule()
    assert reservation(desk)["waits_for"] == "its pods: 1 have arrived, and there is room for the other 13"
    ready = standing(desk)
    assert (ready["desired"], ready["max_size"], ready["usable_nodes"], ready["held_nodes"]) == (2, 20, 2, 2)
    assert (ready["headroom_pods"], ready["outstanding_pods"]) == (13, 13)
    for _ in range(13):
        desk.school.student("bio101")
    desk.school.schedule()
    assert reservation(desk)["waits_for"] == "nothing: all 14 pods have arrived"


def test_future_ended_and_cancelled_reservations_say_so_and_live_ones_come_first() -> None:
    desk = Desk()
    desk.school.deliver(desk.school.signal(1, "over", ends_at=rfc3339(EIGHT - 60)))
    desk.school.deliver(desk.school.signal(1, "gone"))
    desk.run("cancel", "gone")
    desk.school.deliver(desk.school.signal(1, "later", starts_at=rfc3339(EIGHT + 3600)))
    desk.school.minutes(5)
    desk.school.deliver(desk.school.signal(1, "live"))
    found = {r["reference"]: (r["phase"], r["waits_for"]) for r in status(desk)["reservations"]}
    assert list(found) == ["live", "later", "over", "gone"]
    assert found["over"][1].startswith("nothing: over since")
    assert found["gone"][1].startswith("nothing: cancelled at")
    assert found["later"][1].endswith("when nodes are asked for (lead 5 min)")
    desk.school.minutes(25.5 * 60)
    assert [r["reference"] for r in status(desk)["reservations"]] == ["later"]


def test_a_pool_that_backs_off_says_why_and_what_it_lends() -> None:
    desk = Desk(School(pools=(pool(fallback=("spare",)), pool("spare"))))
    desk.school.deliver(desk.school.signal(2 * PLACES))
    desk.school.fail_launches(INSUFFICIENT)
    desk.school.tick()
    found = standing(desk)
    assert found["lent_pods"] == {"spare": 14}
    assert "backs off: insufficient-capacity" in found["waits_for"]
    assert "14 pods passed on to spare" in reservation(desk)["waits_for"]
    words = desk.run("status").stdout
    assert "lends 14 pods to spare" in words


def test_pods_that_are_short_are_told_with_the_remedy() -> None:
    desk = Desk(School(max_size=1))
    desk.school.deliver(desk.school.signal(2 * PLACES))
    desk.school.grow()
    assert "7 pods short, 2 units are needed and MaxSize is 1. Raise" in reservation(desk)["waits_for"]


def test_a_paused_school_says_so_everywhere() -> None:
    desk = Desk()
    desk.run("pause")
    desk.school.deliver(desk.school.signal(1))
    assert desk.school.desired() == 0
    assert status(desk)["paused"]
    assert standing(desk)["mode"] == "paused"
    assert "Firstbell is paused" in reservation(desk)["waits_for"]
    assert "PAUSED" in desk.run("status").stdout
    desk.run("resume")
    desk.school.tick()
    assert desk.school.desired() == 1


def test_a_cluster_that_cannot_be_read_leaves_question_marks_and_no_zeros() -> None:
    desk = Desk()
    desk.school.deliver(desk.school.signal(1))
    desk.school.grow()
    desk.school.faults.fail("nodes", ClusterUnreachable("no answer"), times=99)
    found = standing(desk)
    assert (found["usable_nodes"], found["headroom_pods"], found["starting_nodes"]) == (None, None, None)
    assert reservation(desk)["waits_for"].startswith("sight of the cluster")
    words = desk.run("status").stdout
    assert "the cluster cannot be read: no answer" in words
    assert "? usable" in words


def test_a_group_that_is_gone_is_named() -> None:
    desk = Desk()
    desk.school.deliver(desk.school.signal(1))
    desk.school.autoscaling.groups.clear()
    assert standing(desk)["waits_for"] == "its group: there is no asg-notebook in this region"
    assert "there is no group asg-notebook" in reservation(desk)["waits_for"]


def test_a_ledger_that_does_not_answer_ends_with_1() -> None:
    desk = Desk()
    desk.school.faults.fail("ledger.read", ClusterUnreachable("dynamodb:Query: throttled"))
    failed = desk.run("status")
    assert failed.exit_code == 1
    assert "error: dynamodb:Query: throttled" in failed.stderr
