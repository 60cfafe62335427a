"""What stands in a pool's way, each with its words in Capacity Short (issue 4, point 4)."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from firstbell.capacity.failures import Reason
from firstbell.capacity.groups import Activity
from firstbell.errors import AccessDenied, Conflict, RetryLater
from firstbell.reconcile.remedies import REMEDIES
from tests.fakes.school import PLACES, XLARGE, School, pool

INSUFFICIENT = "We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested."
SPOT_PRICE = (
    "Your Spot request price of 0.001 is lower than the minimum required Spot request fulfillment price of 0.0031."
)
VCPUS = "You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket."
TEMPLATE = "Could not launch Spot Instances. InvalidAMIID.NotFound - The image id '[ami-0c]' does not exist."
BUSY = "autoscaling:SetDesiredCapacity: ScalingActivityInProgress: Scaling activity is in progress"
REFRESH = "At 2026-12-01T07:58:00Z an instance was taken out of service in response to an instance refresh."


def short(school: School, reference: str = "bio101") -> list[tuple[str, str, int]]:
    """Reason, particulars and pods of each Capacity Short; each says what the operator can do."""
    said = [event for event in school.said("Capacity Short") if event["reference"] == reference]
    assert all(event["remedy"] == REMEDIES[Reason(event["reason"])] for event in said)
    return [(event["reason"], event["detail"], event["pods_short"]) for event in said]


def test_every_reason_says_what_the_operator_can_do() -> None:
    assert set(REMEDIES) == set(Reason)


@pytest.mark.parametrize(
    ("message", "reason", "detail"),
    [
        (INSUFFICIENT, "insufficient-capacity", INSUFFICIENT),
        (SPOT_PRICE, "spot-price", SPOT_PRICE),
        (VCPUS, "quota", "VcpuLimitExceeded"),
        (TEMPLATE, "launch-failed", TEMPLATE),
    ],
)
def test_a_launch_that_fails_is_told_with_awss_words_or_the_quotas_name(message: str, reason: str, detail: str) -> None:
    school = School()
    school.deliver(school.signal(2 * PLACES))
    school.fail_launches(message)
    school.minutes(1)
    school.tick()
    assert short(school) == [(reason, detail, 2 * PLACES)]


def test_case_40_a_weighted_group_is_raised_withdrawn_and_told_in_its_own_units() -> None:
    double = replace(XLARGE, name="m5.2xlarge", vcpus=8, memory_mib=32768)
    school = School(max_size=6)
    school.instance_types.facts[double.name] = double
    school.change_group(instance_types=("m5.xlarge", "m5.2xlarge"), weights={"m5.xlarge": 1, "m5.2xlarge": 2})
    school.deliver(school.signal(7 * PLACES))
    assert school.desired() == 6
    assert short(school) == [("max-size", "7 units are needed and MaxSize is 6", PLACES)]
    school.autoscaling.launch("asg-notebook", 2)
    school.fail_launches(INSUFFICIENT)
    school.minutes(1)
    school.tick()
    assert school.desired() == 2


def test_a_busy_group_is_told_and_tried_again_each_minute() -> None:
    school = School()
    school.faults.fail("set_desired", RetryLater(BUSY), times=2)
    school.deliver(school.signal(PLACES))
    assert short(school) == [("busy-group", BUSY, PLACES)]
    school.minutes(1)
    school.tick()
    assert school.desired() == 0
    school.minutes(1)
    school.tick()
    assert school.desired() == 1
    assert len(short(school)) == 1


def test_a_throttled_description_is_tried_again_by_whoever_delivers_the_event() -> None:
    school = School()
    event = school.signal(PLACES)
    school.autoscaling.faults.fail("describe", RetryLater("Throttling: Rate exceeded"))
    with pytest.raises(RetryLater):
        school.deliver(event)
    school.deliver(event)
    assert school.desired() == 1


def test_a_max_size_that_shrank_between_reading_and_writing_is_read_again() -> None:
    school = School()
    school.faults.fail("set_desired", Conflict("above max value"))
    school.deliver(school.signal(PLACES))
    assert school.desired() == 1


def refreshing(school: School) -> None:
    activities = school.autoscaling.activity_list.setdefault("asg-notebook", [])
    activities.append(Activity("refresh", "Successful", "Terminating EC2 instance: i-0aa", REFRESH, "", school.now))


def test_while_an_instance_refresh_runs_nothing_is_withdrawn_and_the_words_say_so() -> None:
    school = School()
    school.deliver(school.signal(2 * PLACES))
    _, second = school.grow()
    school.minutes(3)
    school.tick()
    refreshing(school)
    school.autoscaling.vanish(second)
    school.cluster.remove_node(f"node-{second}")
    school.fail_launches(INSUFFICIENT)
    school.minutes(1)
    school.tick()
    assert school.desired() == 2
    expected = f"{INSUFFICIENT}; an instance refresh is replacing instances of the group"
    assert short(school) == [("insufficient-capacity", expected, PLACES)]


def test_an_instance_refresh_is_no_stall() -> None:
    """Each look finds a unit that is not launched, and each time it is another one."""
    school = School()
    school.deliver(school.signal(2 * PLACES, hold_minutes=240))
    school.grow()
    for _ in range(15):
        refreshing(school)
        oldest = school.autoscaling.groups["asg-notebook"].members[0].instance_id
        school.autoscaling.vanish(oldest)
        school.cluster.remove_node(f"node-{oldest}")
        school.tick()
        school.minutes(1)
        school.grow()
    school.tick()
    assert school.desired() == 2
    assert short(school) == []


def test_units_that_nothing_launches_for_ten_minutes_fall_back() -> None:
    school = School(pools=(pool(fallback=("spare",)), pool("spare")))
    school.deliver(school.signal(PLACES, hold_minutes=240))
    for _ in range(12):
        school.minutes(1)
        school.tick()
    assert (school.desired(), school.desired("spare")) == (0, 1)
    assert short(school) == [("launch-failed", "1 units were asked for 11 minutes ago and nothing was launched", 0)]


def test_the_back_off_doubles_with_each_try_that_fails_and_ends_with_one_that_succeeds() -> None:
    school = School()
    school.deliver(school.signal(PLACES, hold_minutes=600))
    tries = [school.now]
    for _ in range(70):
        if school.desired() and not school.autoscaling.groups["asg-notebook"].members:
            school.fail_launches(INSUFFICIENT)
        school.minutes(1)
        before = school.desired()
        school.tick()
        if school.desired() > before:
            tries.append(school.now)
    pauses = [round((later - earlier) / 60) for earlier, later in itertools.pairwise(tries)]
    assert pauses == [5, 10, 20, 30]
    school.launch()
    launched = Activity("ok", "Successful", "Launching a new EC2 instance: i-0aa", "", "", school.now, school.now)
    school.autoscaling.activity_list["asg-notebook"].append(launched)
    school.tick()
    assert school.ledger.read().state("notebook").backoff_seconds == 0


def test_a_node_that_registers_and_is_never_ready_is_replaced_once_and_named() -> None:
    school = School()
    school.deliver(school.signal(PLACES, hold_minutes=240))
    broken = school.grow()
    node = school.cluster.node_by_name[f"node-{broken[0]}"]
    school.cluster.add_node(replace(node, ready=False, ready_at=0.0))
    school.tick()
    school.minutes(11)
    school.tick()
    assert school.desired() == 2
    broken += school.launch()
    school.tick()
    school.minutes(11)
    school.tick()
    assert school.desired() == 2
    assert short(school) == [("never-joined", f"no node joined from {', '.join(sorted(broken))}", PLACES)]


def test_a_node_that_breaks_later_is_replaced_and_its_pool_is_not_taken_for_broken() -> None:
    school = School()
    school.deliver(school.signal(PLACES, hold_minutes=240))
    for nodes in (2, 3):
        (instance_id,) = school.grow()
        school.tick()
        school.minutes(15)
        node = school.cluster.node_by_name[f"node-{instance_id}"]
        school.cluster.add_node(replace(node, ready=False, ready_at=0.0))
        school.tick()
        assert school.desired() == nodes
    assert short(school) == []


@pytest.mark.parametrize("error", [RetryLater("no answer"), AccessDenied("403")])
def test_an_unreachable_cluster_is_said_never_read_as_no_nodes_and_bought_for_once(error: Exception) -> None:
    """Case 62."""
    school = School()
    school.change_group(desired=2)
    school.grow()
    school.faults.fail("nodes", error, times=99)
    school.deliver(school.signal(PLACES))
    for _ in range(5):
        school.minutes(1)
        school.grow()
        school.tick()
    assert school.desired() == 3
    (requested,) = school.said("Capacity Requested")
    assert requested["headroom_known"] is False
    assert not school.said("Capacity Ready")
    assert not [call for call in school.faults.calls if call.name == "annotate_node"]


def test_a_throttled_ledger_fails_the_run_and_the_event_comes_again() -> None:
    school = School()
    event = school.signal(PLACES)
    for call in ("ledger.read", "ledger.store", "ledger.lease", "ledger.finish"):
        school.faults.fail(call, RetryLater("dynamodb: ProvisionedThroughputExceededException"))
        with pytest.raises(RetryLater):
            school.deliver(event)
    school.deliver(event)
    school.tick()
    assert school.desired() == 1
    assert {event["outcome_id"] for event in school.said("Capacity Requested")} == {
        f"bio101/{school.now:.3f}/requested"
    }


def test_pods_bound_to_a_zone_are_bought_for_once() -> None:
    """Their volumes are in us-west-2b; what is not launched may come up in either zone, so one of each is asked."""
    school = School()
    school.change_group(zones=("us-west-2a", "us-west-2b"))
    school.deliver(school.signal(1))
    waiting = school.student("bio101")
    school.cluster.add_pod(replace(waiting, claims=("home",), requests=replace(waiting.requests, volumes=1)))
    school.cluster.volume_zones[waiting.uid] = ("us-west-2b",)
    for _ in range(4):
        school.minutes(1)
        school.tick()
    assert school.desired() == 3
    assert short(school) == []


def test_pods_whose_zone_the_group_does_not_have_are_told() -> None:
    school = School()
    school.deliver(school.signal(1))
    school.grow()
    waiting = school.student("bio101")
    school.cluster.add_pod(replace(waiting, claims=("home",), requests=replace(waiting.requests, volumes=1)))
    school.cluster.volume_zones[waiting.uid] = ("us-west-2d",)
    school.tick()
    assert short(school) == [("unplaceable", "no node that the group launches takes these pods", 1)]
    assert school.desired() == 1
