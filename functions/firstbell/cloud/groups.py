"""Auto Scaling's descriptions as `capacity.groups` types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firstbell.capacity.groups import Activity, Group, Member

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_autoscaling.type_defs import ActivityTypeDef, AutoScalingGroupTypeDef, InstanceTypeDef


def parse_group(described: AutoScalingGroupTypeDef, template_type: Callable[[Mapping[str, Any]], str]) -> Group:
    """One entry of DescribeAutoScalingGroups. `template_type` reads a launch template where no override names a type.

    Weights count only if the policy has them: without any, a unit is an instance
    (https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-mixed-instances-groups-instance-weighting.html).
    """
    members = tuple(_member(instance) for instance in described.get("Instances", ()))
    launch = described.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
    overrides = [override for override in launch.get("Overrides", ()) if "InstanceType" in override]
    types = tuple(override["InstanceType"] for override in overrides)
    specification = launch.get("LaunchTemplateSpecification") or described.get("LaunchTemplate")
    by_requirements = bool(launch.get("Overrides")) and not overrides
    if not types and specification and not by_requirements:
        types = tuple(filter(None, (template_type(specification),)))
    return Group(
        name=described["AutoScalingGroupName"],
        desired=described["DesiredCapacity"],
        min_size=described["MinSize"],
        max_size=described["MaxSize"],
        members=members,
        suspended=frozenset(process["ProcessName"] for process in described.get("SuspendedProcesses", ())),
        weights={o["InstanceType"]: int(o["WeightedCapacity"]) for o in overrides if o.get("WeightedCapacity")},
        instance_types=types or tuple(dict.fromkeys(member.instance_type for member in members)),
        zones=tuple(described.get("AvailabilityZones", ())),
        capacity_rebalance=described.get("CapacityRebalance") or False,
        target_group_arns=tuple(described.get("TargetGroupARNs", ())),
        tags={tag["Key"]: tag.get("Value", "") for tag in described.get("Tags", ())},
    )


def parse_activity(described: ActivityTypeDef) -> Activity:
    """One entry of DescribeScalingActivities."""
    ended = described.get("EndTime")
    return Activity(
        activity_id=described["ActivityId"],
        status=described["StatusCode"],
        description=described.get("Description", ""),
        cause=described.get("Cause", ""),
        status_message=described.get("StatusMessage", ""),
        started_at=described["StartTime"].timestamp(),
        ended_at=ended.timestamp() if ended else 0.0,
    )


def _member(instance: InstanceTypeDef) -> Member:
    return Member(
        instance_id=instance["InstanceId"],
        lifecycle=instance["LifecycleState"],
        instance_type=instance.get("InstanceType", ""),
        zone=instance["AvailabilityZone"],
        weight=int(instance.get("WeightedCapacity") or 1),
        healthy=instance["HealthStatus"].lower() == "healthy",
        protected_from_scale_in=instance["ProtectedFromScaleIn"],
    )
