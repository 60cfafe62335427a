"""Groups, members, activities and hooks as the Describe calls show them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from localcloud.fleet.state import Activity, Group, Hook, Member, Refresh, Tag


def when(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def present(**members: Any) -> dict[str, Any]:
    """AWS leaves out what is not set."""
    return {name: value for name, value in members.items() if value not in (None, "", [])}


def group_answer(group: Group) -> dict[str, Any]:
    settings = {
        "DefaultCooldown": 300,
        "HealthCheckType": "EC2",
        "HealthCheckGracePeriod": 0,
        "TerminationPolicies": ["Default"],
        "NewInstancesProtectedFromScaleIn": False,
        "CapacityRebalance": False,
        **group.settings,
    }
    return {
        **settings,
        **present(Status="Delete in progress" if group.deleting else None),
        "AutoScalingGroupName": group.name,
        "AutoScalingGroupARN": group.arn,
        "MinSize": group.min_size,
        "MaxSize": group.max_size,
        "DesiredCapacity": group.desired,
        "AvailabilityZones": list(group.zones),
        "VPCZoneIdentifier": ",".join(group.subnets.values()),
        "CreatedTime": when(group.created_at),
        "Instances": [member_answer(member) for member in group.members.values()],
        "SuspendedProcesses": [
            {"ProcessName": name, "SuspensionReason": reason} for name, reason in sorted(group.suspended.items())
        ],
        "EnabledMetrics": [{"Metric": one, "Granularity": "1Minute"} for one in settings.pop("EnabledMetrics", [])],
        "Tags": [tag_answer(group, tag) for tag in group.tags.values()],
    }


def member_answer(member: Member) -> dict[str, Any]:
    return {
        "InstanceId": member.instance_id,
        "InstanceType": member.machine.instance_type,
        "AvailabilityZone": member.zone,
        "LifecycleState": member.lifecycle,
        "HealthStatus": member.health,
        "LaunchTemplate": {**member.template.reference, "Version": member.template.number},
        "ProtectedFromScaleIn": member.protected,
        **present(WeightedCapacity=str(member.weight) if member.weighted else None),
    }


def tag_answer(group: Group, tag: Tag) -> dict[str, Any]:
    return {
        "ResourceId": group.name,
        "ResourceType": "auto-scaling-group",
        "Key": tag.key,
        "Value": tag.value,
        "PropagateAtLaunch": tag.propagate,
    }


def activity_answer(activity: Activity, group_arn: str | None) -> dict[str, Any]:
    return {
        "ActivityId": activity.activity_id,
        "AutoScalingGroupName": activity.group_name,
        "Description": activity.description,
        "Cause": activity.cause,
        "StartTime": when(activity.started_at),
        "StatusCode": activity.status,
        "Progress": activity.progress,
        "Details": json.dumps(dict(activity.details)),
        **present(
            EndTime=when(activity.ended_at),
            StatusMessage=activity.message,
            AutoScalingGroupARN=group_arn,
            AutoScalingGroupState=None if group_arn else "Deleted",
        ),
    }


def hook_answer(hook: Hook) -> dict[str, Any]:
    return {
        "LifecycleHookName": hook.name,
        "AutoScalingGroupName": hook.group_name,
        "LifecycleTransition": hook.transition,
        "HeartbeatTimeout": hook.heartbeat_seconds,
        "GlobalTimeout": hook.global_seconds,
        "DefaultResult": hook.default_result,
        **present(NotificationMetadata=hook.metadata, NotificationTargetARN=hook.target_arn, RoleARN=hook.role_arn),
    }


def refresh_answer(group: Group, refresh: Refresh) -> dict[str, Any]:
    ended = refresh.ended_at is not None
    return {
        "InstanceRefreshId": refresh.refresh_id,
        "AutoScalingGroupName": group.name,
        "Status": refresh.status,
        "StartTime": when(refresh.started_at),
        "PercentageComplete": 100 if ended else 0,
        "InstancesToUpdate": 0 if ended else len(group.members),
        **present(EndTime=when(refresh.ended_at)),
    }
