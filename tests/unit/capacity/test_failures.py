"""Why a group does not launch, in the words that AWS sends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstbell.capacity.failures import (
    FALLS_BACK,
    LaunchFailure,
    Reason,
    being_refreshed,
    classify,
    lowered_by_us,
    read_launches,
    stalled_launch,
    standing_failure,
)
from firstbell.capacity.groups import Activity
from firstbell.capacity.pool_state import PoolState
from tests.unit.capacity.sizes import LARGE, NOW, group, member

REQUEST = "Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit."
FAILED = "Launching EC2 instance failed."

MESSAGES = {
    # docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-capacity.html
    "We currently do not have sufficient m5.large capacity in the Availability Zone you requested (us-west-2a). Our "
    "system will be working on provisioning additional capacity. You can currently get m5.large capacity by not "
    f"specifying an Availability Zone in your request or choosing us-west-2b. {FAILED}": Reason.INSUFFICIENT_CAPACITY,
    f"There is no Spot capacity available that matches your request. {FAILED}": Reason.INSUFFICIENT_CAPACITY,
    # github.com/kubernetes/autoscaler/issues/3241
    "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot capacity available that matches "
    f"your request. {FAILED}": Reason.INSUFFICIENT_CAPACITY,
    # github.com/buildkite/elastic-ci-stack-for-aws/issues/851
    "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request "
    f"configuration. Please adjust your request and try again. {FAILED}": Reason.INSUFFICIENT_CAPACITY,
    "Could not launch Spot Instances. UnfulfillableCapacity - There is no capacity available that matches your "
    f"request. {FAILED}": Reason.INSUFFICIENT_CAPACITY,
    # docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html
    "Your Spot request price of 0.001 is lower than the minimum required Spot request fulfillment price of 0.0031. "
    f"{FAILED}": Reason.SPOT_PRICE,
    "Could not launch Spot Instances. SpotMaxPriceTooLow - Your Spot request price of 0.001 is lower than the minimum "
    f"required Spot request fulfillment price of 0.5762. {FAILED}": Reason.SPOT_PRICE,
    # github.com/aws-deepracer-community/deepracer-on-the-spot/issues/55
    f"Max spot instance count exceeded. {FAILED}": Reason.QUOTA,
    f"Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance count exceeded. {FAILED}": (
        Reason.QUOTA
    ),
    "Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more vCPU capacity than your current "
    "vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to. "
    f"{REQUEST} {FAILED}": Reason.QUOTA,
    # github.com/kubernetes/autoscaler/issues/1263
    "You have requested more instances (7) than your current instance limit of 6 allows for the specified instance "
    f"type. {REQUEST} {FAILED}": Reason.QUOTA,
    f"Your quota allows for 0 more running instance(s). You requested at least 1. {FAILED}": Reason.QUOTA,
    f"You've reached your quota for maximum Fleet Requests for this account. {FAILED}": Reason.QUOTA,
    # github.com/mludvig/aws-ethereum-miner/issues/23: of Spot, and no want of capacity
    "Could not launch Spot Instances. InvalidFleetConfiguration - Your requested instance type (p3.8xlarge) is not "
    f"supported in your requested Availability Zone (us-east-2c). {FAILED}": Reason.LAUNCH_FAILED,
    "Could not launch On-Demand Instances. InvalidAMIID.NotFound - The image id '[ami-02c7e84c65fcfecee]' does not "
    f"exist. {FAILED}": Reason.LAUNCH_FAILED,
    f"Authentication Failure. {FAILED}": Reason.LAUNCH_FAILED,
    # docs.aws.amazon.com/autoscaling/ec2/userguide/tutorial-lifecycle-hook-instance-metadata.html
    "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token e85eb647-4fe0-4909-b341 was "
    "abandoned: Lifecycle Action Completed with ABANDON Result": Reason.LAUNCH_FAILED,
    "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: "
    "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state": Reason.LAUNCH_FAILED,
}


def launch(status: str = "Failed", message: str = FAILED, at: float = NOW, cause: str = "") -> Activity:
    return Activity(f"a-{at}", status, "Launching a new EC2 instance", cause, message, at, at + 1)


@pytest.mark.parametrize(("message", "reason"), MESSAGES.items())
def test_awss_words_are_understood(message: str, reason: Reason) -> None:
    assert classify(message)[0] is reason


def test_a_quota_is_named_and_every_other_failure_keeps_awss_words() -> None:
    details = {message: classify(message)[1] for message in MESSAGES}
    quotas = {details[message] for message, reason in MESSAGES.items() if reason is Reason.QUOTA}
    assert quotas == {
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "maximum Fleet Requests",
    }
    assert all(details[message] == message for message, reason in MESSAGES.items() if reason is not Reason.QUOTA)


def test_everything_but_a_quota_and_what_is_no_launch_falls_back() -> None:
    assert {reason for reason in MESSAGES.values() if reason not in FALLS_BACK} == {Reason.QUOTA}


def test_a_cancelled_launch_failed_only_where_it_says_why() -> None:
    """Lowering desired cancels launches, too; that is nobody's failure."""
    assert read_launches([launch("Cancelled", "")], since=0, unlaunched_units=1).failure is None
    abandoned = read_launches([launch("Cancelled", "Lifecycle Action was abandoned")], since=0, unlaunched_units=1)
    assert abandoned.failure is not None


def test_a_success_after_the_failure_is_a_recovery() -> None:
    launches = read_launches([launch(at=NOW), launch("Successful", "", NOW + 5)], since=0, unlaunched_units=0)
    assert (launches.failure, launches.recovered) == (None, True)


def test_part_of_a_launch_that_failed_counts_while_units_are_outstanding() -> None:
    launches = read_launches([launch(at=NOW), launch("Successful", "", NOW + 5)], since=0, unlaunched_units=2)
    assert launches.failure is not None


def test_what_was_known_before_is_not_told_again() -> None:
    assert read_launches([launch(at=NOW)], since=NOW, unlaunched_units=2).failure is None
    terminated = replace(launch(), description="Terminating EC2 instance: i-0aa")
    assert read_launches([terminated], since=0, unlaunched_units=2).failure is None


def test_case_35_a_foreign_value_that_we_overwrote_is_found_in_the_cause() -> None:
    cause = "At 2026-12-01T08:00:00Z a user request explicitly set group desired capacity changing the desired "
    assert lowered_by_us([launch(cause=cause + "capacity from 25 to 22.")], (20, 22, NOW)) == 25
    assert lowered_by_us([launch(cause=cause + "capacity from 20 to 22.")], (20, 22, NOW)) == 0
    assert lowered_by_us([launch(cause=cause + "capacity from 25 to 22.", at=NOW - 300)], (20, 22, NOW)) == 0


def test_units_that_nobody_launches_for_ten_minutes_are_a_failure() -> None:
    waiting = PoolState(unlaunched_since=NOW)
    assert stalled_launch(group(LARGE, desired=3), waiting, NOW + 600) is None
    stalled = stalled_launch(group(LARGE, desired=3), waiting, NOW + 601)
    assert stalled is not None
    assert stalled.detail == "3 units were asked for 10 minutes ago and nothing was launched"
    assert stalled_launch(group(LARGE, desired=3), waiting.failed(stalled), NOW + 660) is None


def test_an_instance_refresh_is_known_by_what_it_causes() -> None:
    cause = "At 2026-12-01T08:00:00Z an instance was taken out of service in response to an instance refresh."
    assert being_refreshed([launch(cause=cause)], NOW + 60)
    assert not being_refreshed([launch(cause=cause)], NOW + 3600)
    assert not being_refreshed([launch()], NOW)


def test_a_suspended_launch_stands_in_the_way_as_long_as_it_is() -> None:
    suspended = standing_failure(group(LARGE, suspended=frozenset({"Launch"})), PoolState(), [], NOW)
    assert suspended is not None
    assert suspended.reason is Reason.LAUNCH_SUSPENDED


def test_a_second_round_that_does_not_join_says_that_the_pool_is_broken_unless_a_later_one_did() -> None:
    first, second, third = (member(n, LARGE) for n in (1, 2, 3))
    state = PoolState(first_seen={first.instance_id: NOW - 1400, second.instance_id: NOW - 700})
    assert standing_failure(group(LARGE), state, [first], NOW) is None
    broken = standing_failure(group(LARGE), state, [first, second], NOW)
    assert broken == LaunchFailure(
        Reason.NEVER_JOINED, f"no node joined from {first.instance_id}, {second.instance_id}", NOW
    )
    joined_since = replace(
        state, first_seen={**state.first_seen, third.instance_id: NOW - 650}, served=(third.instance_id,)
    )
    assert standing_failure(group(LARGE), joined_since, [first, second], NOW) is None
