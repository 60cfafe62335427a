"""AWS's words for scaling activities: causes, and why a launch failed. Times are Unix seconds.

Causes: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-verify-scaling-activity.html
Failures: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

FAILED = "Launching EC2 instance failed."
QUOTA_PAGE = "http://aws.amazon.com/contact-us/ec2-request"


def stamp(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def sentences(parts: Iterable[str]) -> str:
    """AWS puts two spaces between the sentences of a cause."""
    return "  ".join(part for part in parts if part)


def created(now: float, desired: int) -> str:
    return (
        f"At {stamp(now)} a user request created an AutoScalingGroup changing the desired capacity from 0 to {desired}."
    )


def constraints_updated(now: float, minimum: int, maximum: int, before: int, after: int) -> str:
    return (
        f"At {stamp(now)} a user request update of AutoScalingGroup constraints to min: {minimum}, max: {maximum}, "
        f"desired: {after} changing the desired capacity from {before} to {after}."
    )


def desired_set(now: float, before: int, after: int) -> str:
    return (
        f"At {stamp(now)} a user request explicitly set group desired capacity changing the desired capacity "
        f"from {before} to {after}."
    )


def started(now: float, before: int, after: int) -> str:
    return (
        f"At {stamp(now)} an instance was started in response to a difference between desired and actual capacity, "
        f"increasing the capacity from {before} to {after}."
    )


def shrunk(now: float, before: int, after: int, instance_id: str) -> str:
    return sentences(
        (
            f"At {stamp(now)} an instance was taken out of service in response to a difference between desired and "
            f"actual capacity, shrinking the capacity from {before} to {after}.",
            f"At {stamp(now)} instance {instance_id} was selected for termination.",
        )
    )


def taken_out_by_user(now: float, instance_id: str, change: tuple[int, int] | None) -> str:
    shrinking = f", shrinking the capacity from {change[0]} to {change[1]}" if change else ""
    return f"At {stamp(now)} instance {instance_id} was taken out of service in response to a user request{shrinking}."


def detached(now: float, instance_id: str, change: tuple[int, int] | None) -> str:
    shrinking = f", shrinking the capacity from {change[0]} to {change[1]}" if change else ""
    return f"At {stamp(now)} instance {instance_id} was detached in response to a user request{shrinking}."


def unhealthy(now: float, because: str) -> str:
    return f"At {stamp(now)} an instance was taken out of service in response to {because}."


EC2_HEALTH = "an EC2 health check indicating it has been terminated or stopped"
USER_HEALTH = "a user health-check"


def balancing(now: float, counts: Sequence[tuple[str, int]]) -> str:
    zones = " ".join(zone for zone, _ in counts)
    numbers = " ".join(str(count) for _, count in counts)
    return (
        f"At {stamp(now)} availability zones {zones} had {numbers} instances respectively. "
        f"An instance was launched to aid in balancing the group's zones."
    )


def balanced(now: float, zone: str) -> str:
    return (
        f"At {stamp(now)} instances were launched to balance instances in zones {zone} with other zones resulting in "
        f"more than desired number of instances in the group."
    )


def capacity_rebalanced(now: float, instance_id: str) -> str:
    return (
        f"At {stamp(now)} an instance was launched in response to an EC2 instance rebalance recommendation "
        f"for instance {instance_id}."
    )


ALL_PROTECTED = "Could not scale to desired capacity because all remaining instances are protected from scale-in."


def abandoned(token: str, because: str) -> str:
    action = f"Lifecycle Action with token {token} was abandoned: {because}"
    return f"Instance failed to complete user's Lifecycle Action: {action}"


def launch_failure(kind: str, instance_type: str, zone: str, zones: Sequence[str], *, mixed: bool, spot: bool) -> str:
    """The StatusMessage of a failed launch. `kind` is EC2's error code; an unknown one stands for itself."""
    others = ", ".join(one for one in zones if one != zone) or "another zone"
    said = {
        "InsufficientInstanceCapacity": (
            f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested "
            f"({zone}). Our system will be working on provisioning additional capacity. You can currently get "
            f"{instance_type} capacity by not specifying an Availability Zone in your request or choosing {others}."
        ),
        "UnfulfillableCapacity": (
            "Unable to fulfill capacity due to your request configuration. Please adjust your request and try again."
        ),
        "SpotMaxPriceTooLow": (
            "Your Spot request price of 0.015 is lower than the minimum required Spot request fulfillment price of "
            "0.0735."
        ),
        "MaxSpotInstanceCountExceeded": "Max spot instance count exceeded",
        "VcpuLimitExceeded": (
            "You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket "
            f"that the specified instance type belongs to. Please visit {QUOTA_PAGE} to request an adjustment to this "
            "limit."
        ),
        "InvalidParameter": "The parameter groupId cannot be used with the parameter subnet",
        "InvalidAMIID.NotFound": "The image id '[ami-00000000000000000]' does not exist",
    }.get(kind, kind)
    if spot and kind == "InsufficientInstanceCapacity" and not mixed:
        return f"There is no Spot capacity available that matches your request. {FAILED}"
    if mixed:
        market = "Spot" if spot else "On-Demand"
        said = f"Could not launch {market} Instances. {kind} - {said}"
    return f"{said if said.endswith('.') else said + '.'} {FAILED}"
