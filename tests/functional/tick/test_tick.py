"""The minute's run: the real service over fakes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstbell.errors import AccessDenied
from firstbell.reconcile.holds import HELD_BY_US, SCALE_DOWN_DISABLED
from tests.fakes.school import EIGHT, PLACES, School, pool

INSUFFICIENT = (
    "We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested (us-west-2a)."
)
QUOTA = "Max spot instance count exceeded. Launching EC2 instance failed."

NOTHING_TO_DO = {"ledger.read", "pending_pods", "remembered"}
"""What a minute asks where nothing is reserved: both partitions of the ledger, and the pods that wait."""


def two_pools(**options: object) -> School:
    return School(pools=(pool(fallback=("spare",)), pool("spare", **options)))


def test_capacity_is_ready_when_ready_nodes_cover_it_not_when_they_are_on_their_way() -> None:
    school = School()
    school.deliver(school.signal(2 * PLACES))
    launched = school.launch()
    school.tick()
    assert not school.said("Capacity Ready")
    school.minutes(1)
    school.join(launched)
    school.tick()
    school.minutes(1)
    school.tick()
    (ready,) = school.said("Capacity Ready")
    assert (ready["reference"], ready["nodes"]) == ("bio101", 2)
    assert ready["stages"] == {
        "signal_received": 0.0,
        "desired_raised": 0.0,
        "node_joined": 60.0,
        "node_ready": 60.0,
    }
    assert school.desired() == 2


def test_a_class_that_was_announced_finds_its_places_and_nothing_more_is_bought() -> None:
    school = School()
    school.deliver(school.signal(3 * PLACES))
    school.grow()
    school.minutes(5)
    for _ in range(3 * PLACES):
        school.student("bio101")
    school.tick()
    assert school.schedule() == 0
    school.tick()
    assert school.desired() == 3


def test_students_beyond_their_reservation_get_nodes_too() -> None:
    school = School()
    school.deliver(school.signal(PLACES))
    school.grow()
    for _ in range(PLACES + 1):
        school.student("bio101")
    school.schedule()
    school.tick()
    assert school.desired() == 2


def test_waiting_pods_without_any_reservation_only_alarm() -> None:
    school = School()
    school.student()
    school.minutes(4)
    school.tick()
    assert school.desired() == 0
    assert school.telemetry.total("LongestPendingSeconds") == 240
    assert {call.name for call in school.faults.calls} == NOTHING_TO_DO


def test_nodes_of_a_live_reservation_are_held_and_only_our_holds_are_released() -> None:
    school = School()
    school.deliver(school.signal(2 * PLACES))
    first, _ = school.grow()
    node = school.cluster.node_by_name[f"node-{first}"]
    school.cluster.add_node(replace(node, annotations={SCALE_DOWN_DISABLED: "true"}))
    school.tick()
    nodes = school.cluster.node_by_name.values()
    assert [n.annotations.get(SCALE_DOWN_DISABLED) for n in nodes] == ["true", "true"]
    assert [HELD_BY_US in n.annotations for n in nodes] == [False, True]
    school.minutes(61)
    school.tick()
    assert [n.annotations.get(SCALE_DOWN_DISABLED) for n in school.cluster.node_by_name.values()] == ["true", None]


def test_what_is_left_to_undo_is_visited_until_it_is_undone() -> None:
    school = School()
    school.deliver(school.signal(PLACES))
    school.grow()
    school.tick()
    school.minutes(61)
    for _ in range(3):
        school.tick()
    school.faults.calls.clear()
    school.tick()
    assert {call.name for call in school.faults.calls} == NOTHING_TO_DO


def test_case_39_a_suspended_launch_is_reported_falls_back_and_is_not_bumped_again() -> None:
    school = two_pools()
    school.change_group(suspended=frozenset({"Launch"}))
    school.deliver(school.signal(2 * PLACES))
    assert school.desired() == 0
    assert school.desired("spare") == 2
    (short,) = school.said("Capacity Short")
    assert (short["reason"], short["fallback"], short["pods_short"]) == ("launch-suspended", {"spare": 14}, 0)
    for _ in range(3):
        school.minutes(1)
        school.tick()
    assert (school.desired(), school.desired("spare")) == (0, 2)


def test_insufficient_capacity_falls_back_and_withdraws_and_what_is_covered_there_is_not_bought_again() -> None:
    school = two_pools()
    school.deliver(school.signal(2 * PLACES))
    school.fail_launches(INSUFFICIENT)
    school.minutes(1)
    school.tick()
    assert (school.desired(), school.desired("spare")) == (0, 2)
    (short,) = school.said("Capacity Short")
    assert (short["reason"], short["detail"]) == ("insufficient-capacity", INSUFFICIENT)
    school.grow("spare")
    school.tick()
    school.tick()
    assert [event["reference"] for event in school.said("Capacity Ready")] == ["bio101"]
    school.minutes(6)  # the back-off is over
    school.tick()
    assert (school.desired(), school.desired("spare")) == (0, 2)


def test_after_the_back_off_what_no_fallback_pool_covers_is_tried_again() -> None:
    school = two_pools()
    school.change_group("spare", max_size=1)
    school.deliver(school.signal(2 * PLACES))
    school.fail_launches(INSUFFICIENT)
    school.minutes(1)
    school.tick()
    school.grow("spare")
    school.tick()
    school.tick()
    assert (school.desired(), school.desired("spare")) == (0, 1)
    school.minutes(6)
    school.tick()
    assert (school.desired(), school.desired("spare")) == (1, 1)
    school.grow()
    school.tick()
    assert [event["reference"] for event in school.said("Capacity Ready")] == ["bio101"]


def test_what_a_fallback_pool_loses_it_buys_again_and_if_it_cannot_the_pool_itself_does() -> None:
    school = two_pools()
    school.deliver(school.signal(PLACES, hold_minutes=120))
    school.fail_launches(INSUFFICIENT)
    school.minutes(1)
    school.tick()
    (stand_in,) = school.grow("spare")
    school.tick()
    school.minutes(6)
    school.cluster.remove_node(f"node-{stand_in}")
    school.change_group("spare", desired=0, members=())
    school.tick()
    assert (school.desired(), school.desired("spare")) == (0, 1)
    school.minutes(1)
    school.fail_launches(INSUFFICIENT, "spare")
    school.minutes(1)
    school.tick()
    assert (school.desired(), school.desired("spare")) == (1, 0)


def test_a_shortfall_that_the_fallback_pool_cannot_take_after_all_is_told() -> None:
    school = two_pools()
    school.change_group(suspended=frozenset({"Launch"}))
    school.deliver(school.signal(PLACES))
    school.minutes(1)
    school.fail_launches(INSUFFICIENT, "spare")
    school.minutes(1)
    school.tick()
    assert [(short["reason"], short["pods_short"]) for short in school.said("Capacity Short")] == [
        ("launch-suspended", 0),
        ("launch-suspended", PLACES),
    ]


def test_a_fallback_pool_that_only_observes_is_passed_over() -> None:
    school = School(pools=(pool(fallback=("watched", "spare")), pool("watched", mode="observe"), pool("spare")))
    school.change_group(suspended=frozenset({"Launch"}))
    school.deliver(school.signal(2 * PLACES))
    assert [school.desired(name) for name in ("notebook", "watched", "spare")] == [0, 0, 2]


def test_what_one_fallback_pool_cannot_take_goes_to_the_next_in_the_operators_order() -> None:
    school = School(pools=(pool(fallback=("spare", "last")), pool("spare"), pool("last")))
    school.change_group("spare", max_size=1)
    school.change_group(suspended=frozenset({"Launch"}))
    school.deliver(school.signal(3 * PLACES))
    school.tick()
    school.tick()
    assert [school.desired(name) for name in ("notebook", "spare", "last")] == [0, 1, 2]


def test_a_quota_is_named_and_nothing_falls_back() -> None:
    school = two_pools()
    school.deliver(school.signal(2 * PLACES))
    school.fail_launches(QUOTA)
    school.minutes(1)
    school.tick()
    (short,) = school.said("Capacity Short")
    assert (short["reason"], short["detail"]) == ("quota", "MaxSpotInstanceCountExceeded")
    assert school.desired("spare") == 0
    assert school.telemetry.total("QuotaReached") == 1


def test_instances_with_user_pods_are_protected_while_units_are_withdrawn_and_released_after() -> None:
    school = School()
    school.deliver(school.signal(3 * PLACES))
    (first,) = school.autoscaling.launch("asg-notebook", 1)
    school.join([first])
    school.student("bio101")
    school.schedule()
    school.fail_launches(INSUFFICIENT)
    school.minutes(1)
    school.tick()
    protections = [call.args for call in school.autoscaling.calls if call.name == "set_protection"]
    assert protections == [("asg-notebook", (first,), True), ("asg-notebook", (first,), False)]
    assert school.desired() == 1


def test_instances_that_never_join_are_replaced_once_and_named() -> None:
    school = School()
    school.deliver(school.signal(PLACES, hold_minutes=120))
    (lost,) = school.launch()
    school.tick()
    school.minutes(11)
    school.tick()
    assert school.desired() == 2
    school.launch()
    school.tick()
    school.minutes(11)
    school.tick()
    assert school.desired() == 2
    (short,) = school.said("Capacity Short")
    assert short["reason"] == "never-joined"
    assert lost in short["detail"]


def test_a_writer_that_keeps_lowering_the_group_is_undone_and_named() -> None:
    school = School()
    school.deliver(school.signal(2 * PLACES))
    for _ in range(3):
        school.change_group(desired=0)
        school.minutes(1)
        school.tick()
    assert school.desired() == 2
    assert [event["reason"] for event in school.said("Capacity Short")] == ["other-writer"]


def test_a_group_that_is_gone_is_short_in_words() -> None:
    school = School()
    del school.autoscaling.groups["asg-notebook"]
    school.deliver(school.signal(PLACES))
    (short,) = school.said("Capacity Short")
    assert (short["reason"], short["pods_short"]) == ("no-such-group", PLACES)


@pytest.mark.parametrize("stop", ["paused", "observe"])
def test_the_operators_brakes_keep_everything_from_being_written(stop: str) -> None:
    school = School(pools=(pool(mode="observe" if stop == "observe" else "act"),))
    school.ledger.paused = stop == "paused"
    school.deliver(school.signal(PLACES))
    school.tick()
    assert school.desired() == 0
    assert not [c for c in school.faults.calls if c.name in ("set_desired", "annotate_node", "set_protection")]
    (requested,) = school.said("Capacity Requested")
    assert (requested["mode"], requested["desired_after"]) == (stop, 1)


def test_resuming_takes_effect_at_the_next_tick() -> None:
    school = School()
    school.ledger.paused = True
    school.deliver(school.signal(PLACES))
    assert [event["reason"] for event in school.said("Capacity Short")] == ["paused"]
    school.ledger.paused = False
    school.tick()
    assert school.desired() == 1


def test_a_class_that_is_not_ready_at_its_start_is_counted_once() -> None:
    school = School()
    school.deliver(school.signal(PLACES, starts_at="2026-12-01T08:00:00Z"))
    school.now = EIGHT + 30
    school.tick()
    school.tick()
    assert school.telemetry.total("ReservationsLate") == 1


def test_case_62_a_refused_token_alarms_and_never_reads_as_no_nodes() -> None:
    school = School()
    school.deliver(school.signal(PLACES))
    school.minutes(1)
    school.grow()
    school.tick()
    school.faults.fail("nodes", AccessDenied("401"), times=1)
    school.tick()
    assert school.desired() == 1
    assert school.telemetry.total("ClusterAccessDenied") == 1


def test_a_refusal_alarms_also_while_nothing_is_reserved() -> None:
    """case 62: before the first class somebody has to know that the tick may not see the cluster."""
    school = School()
    school.faults.fail("pending_pods", AccessDenied("403"), times=1)
    school.tick()
    assert school.telemetry.total("ClusterAccessDenied") == 1
    assert not school.telemetry.total("PendingPods")
