"""A portal's signal becomes nodes: the real service over fakes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstbell.capacity.cluster_view import DaemonSet
from firstbell.capacity.pools import Networking
from firstbell.capacity.scheduling import Toleration
from firstbell.errors import RetryLater
from tests.fakes import Crash
from tests.fakes.school import EIGHT, PLACES, School, pod_request, pool


def test_the_smallest_signal_raises_the_default_pool() -> None:
    school = School()
    school.deliver(school.event({"region": "us-west-2", "pods": 2 * PLACES + 1}))
    assert school.desired() == 3
    (requested,) = school.said("Capacity Requested")
    assert (requested["desired_before"], requested["desired_after"], requested["density"]) == (0, 3, PLACES)
    assert requested["estimated"] is True


def test_case_37_the_same_event_twice_buys_once() -> None:
    school = School()
    event = school.signal(30)
    school.deliver(event)
    school.deliver(event)
    school.minutes(10)
    school.deliver(event)
    assert school.desired() == 5
    assert len(school.said("Capacity Requested")) == 1


def test_case_37_different_events_are_summed() -> None:
    school = School()
    school.deliver(school.signal(PLACES, "bio101"))
    school.deliver(school.signal(PLACES, "chem202"))
    assert school.desired() == 2


def test_two_classes_share_a_node_that_neither_fills() -> None:
    school = School()
    school.deliver(school.signal(1, "bio101"))
    school.deliver(school.signal(1, "chem202"))
    assert school.desired() == 1


def test_free_places_on_existing_nodes_are_subtracted_first() -> None:
    school = School()
    school.change_group(desired=1)
    school.grow()
    school.student()
    school.schedule()
    school.deliver(school.signal(PLACES - 1))
    assert school.desired() == 1
    assert [event["reference"] for event in school.said("Capacity Ready")] == ["bio101"]


def test_case_33_a_need_above_max_size_sets_max_size_and_reports_the_rest() -> None:
    school = School(max_size=10)
    school.deliver(school.signal(16 * PLACES))
    assert school.desired() == 10
    (short,) = school.said("Capacity Short")
    assert (short["pods_short"], short["reason"]) == (6 * PLACES, "max-size")
    assert "MaxSize is 10" in short["detail"]
    assert "Raise the group's MaxSize" in short["remedy"]


def test_case_35_terminating_instances_are_not_counted_and_a_foreign_raise_is_kept() -> None:
    school = School()
    school.change_group(desired=3)
    ids = school.launch()
    members = school.autoscaling.groups["asg-notebook"].members
    school.change_group(members=(replace(members[0], lifecycle="Terminating:Wait"), *members[1:]), desired=2)
    school.join(ids[1:])
    for _ in range(2 * PLACES):
        school.student()
    school.schedule()
    school.minutes(10)
    school.deliver(school.signal(2 * PLACES))
    assert school.desired() == 4


def test_a_reservation_that_starts_later_waits_for_its_lead() -> None:
    school = School()
    school.deliver(school.signal(PLACES, starts_at="2026-12-01T10:00:00Z"))
    assert school.desired() == 0
    school.now = EIGHT + 115 * 60
    school.tick()
    assert school.desired() == 1


def test_a_correction_replaces_and_a_late_one_does_not() -> None:
    school = School()
    school.deliver(school.signal(PLACES, revision=1))
    late = school.signal(20 * PLACES, revision=2)
    school.minutes(1)
    school.deliver(school.signal(3 * PLACES, revision=3))
    school.deliver(late)
    assert school.desired() == 3


def test_a_correction_within_the_same_second_replaces_and_neither_event_counts_twice() -> None:
    """EventBridge's envelope has whole seconds."""
    school = School()
    first, second = school.signal(PLACES), school.signal(3 * PLACES)
    for event in (first, second, first, second, first):
        school.deliver(event)
    assert school.desired() == 3
    assert [event["pods"] for event in school.said("Capacity Requested")] == [PLACES, 3 * PLACES]


def test_a_cancellation_ends_a_reservation_and_outlives_its_late_signal() -> None:
    school = School()
    signal = school.signal(PLACES)
    school.minutes(1)
    school.deliver(school.event({"reference": "bio101"}, detail_type="Demand Cancelled"))
    school.deliver(signal)
    assert school.desired() == 0


@pytest.mark.parametrize(
    "call", ["ledger.store", "ledger.lease", "describe", "set_desired", "publish", "ledger.finish"]
)
@pytest.mark.parametrize("after_effect", [False, True])
def test_a_run_that_dies_anywhere_is_completed_by_the_next(call: str, after_effect: bool) -> None:
    school = School()
    event = school.signal(2 * PLACES)
    school.faults.fail(call, Crash(), after_effect=after_effect)
    with pytest.raises(Crash):
        school.deliver(event)
    school.minutes(1)
    school.deliver(event)
    school.tick()
    assert school.desired() == 2
    assert {event["reference"] for event in school.said("Capacity Requested")} == {"bio101"}


def test_a_pod_that_fits_on_no_node_is_rejected_with_the_reason() -> None:
    school = School()
    school.deliver(school.signal(1, pod={"memory": "64Gi"}))
    (rejected,) = school.said("Signal Rejected")
    assert rejected["problems"][0]["field"] == "pod"
    assert "m5.xlarge offers" in rejected["problems"][0]["problem"]
    assert school.desired() == 0


def test_a_portal_cannot_reserve_more_than_its_cap() -> None:
    school = School(max_pods=50)
    school.deliver(school.signal(40, "bio101"))
    school.deliver(school.signal(11, "chem202"))
    (rejected,) = school.said("Signal Rejected")
    assert "may reserve 50, 40 are reserved" in rejected["problems"][0]["problem"]
    school.deliver(school.signal(10, "phys303"))
    assert len(school.said("Capacity Requested")) == 2


def test_without_sight_of_the_cluster_it_scales_on_what_is_known_and_says_so() -> None:
    school = School()
    school.change_group(desired=1)
    school.grow()
    school.faults.fail("nodes", RetryLater("no answer"), times=9)
    school.deliver(school.signal(PLACES))
    assert school.desired() == 2
    (requested,) = school.said("Capacity Requested")
    assert requested["headroom_known"] is False
    assert not school.said("Capacity Ready")


def test_a_correction_without_sight_of_the_cluster_does_not_take_new_nodes_for_full_ones() -> None:
    school = School()
    school.deliver(school.signal(2 * PLACES, revision=1))
    school.minutes(1)
    school.grow()
    school.tick()
    school.minutes(1)
    school.faults.fail("nodes", RetryLater("no answer"), times=9)
    school.deliver(school.signal(2 * PLACES, revision=2))
    assert school.desired() == 2


def test_room_that_daemonset_pods_will_take_of_a_young_node_is_not_promised() -> None:
    school = School()
    agent = DaemonSet("kube-system/agent", pod_request(4), tolerations=(Toleration(operator="Exists"),))
    school.cluster.daemonset_list.append(agent)
    school.change_group(desired=1)
    school.grow()
    school.deliver(school.signal(PLACES))
    assert not school.said("Capacity Ready")
    assert school.desired() == 2


def test_a_warm_run_makes_at_most_twelve_calls() -> None:
    school = School(pools=(pool(networking=Networking()),))
    school.deliver(school.signal(1000))
    # EC2's answer is kept by the environment; the fake asks each time.
    calls = [call for call in school.faults.calls if call not in school.instance_types.calls]
    assert len(calls) <= 12, [call.name for call in calls]
