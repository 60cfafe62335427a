"""Auto Scaling's Describe actions, in pages, and instance refreshes as far as they can be seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.fleet.api.answers import activity_answer, group_answer, member_answer, refresh_answer, tag_answer
from localcloud.fleet.api.protocol import page
from localcloud.fleet.errors import Refused, group_not_found, invalid
from localcloud.fleet.fleet import Fleet
from localcloud.fleet.state import Activity, Group, Refresh, Tag


def describe_groups(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    names = request.get("AutoScalingGroupNames")
    chosen = [
        group
        for name, group in sorted(fleet.groups.items())
        if (not names or name in names) and all(_matches(group, one) for one in request.get("Filters") or [])
    ]
    shown, more = page(chosen, request, default=50, most=100)
    return {"AutoScalingGroups": [group_answer(group) for group in shown], **more}


def _matches(group: Group, condition: Mapping[str, Any]) -> bool:
    """https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Filter.html"""
    name, values = condition["Name"], condition.get("Values") or []
    if name == "tag-key":
        return any(key in values for key in group.tags)
    if name == "tag-value":
        return any(tag.value in values for tag in group.tags.values())
    if name.startswith("tag:"):
        tag = group.tags.get(name.removeprefix("tag:"))
        return tag is not None and tag.value in values
    raise invalid(f"Filter type {name} is not correct. Allowed Filter types are: tag-key, tag-value, tag:<key>")


def describe_instances(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    wanted = request.get("InstanceIds")
    chosen = [
        {**member_answer(member), "AutoScalingGroupName": group.name, "HealthStatus": member.health.upper()}
        for group in fleet.groups.values()
        for member in group.members.values()
        if not wanted or member.instance_id in wanted
    ]
    shown, more = page(chosen, request, default=50, most=50)
    return {"AutoScalingInstances": list(shown), **more}


def describe_activities(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """Those in progress first, each part the newest first.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-verify-scaling-activity.html
    """
    name = request.get("AutoScalingGroupName")
    past = fleet.past_activities if request.get("IncludeDeletedGroups") else []
    if name and name not in fleet.groups and not any(one.group_name == name for one in past):
        raise group_not_found(name)
    ids = request.get("ActivityIds")
    everything: list[Activity] = [*past, *(one for group in fleet.groups.values() for one in group.activities)]
    chosen = [
        one
        for one in reversed(everything)
        if (not name or one.group_name == name) and (not ids or one.activity_id in ids)
    ]
    chosen.sort(key=lambda one: (one.ended_at is not None, -one.started_at))
    shown, more = page(chosen, request, default=100, most=100)
    arns = {group.name: group.arn for group in fleet.groups.values()}
    return {"Activities": [activity_answer(one, arns.get(one.group_name)) for one in shown], **more}


def describe_tags(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    chosen = [
        (group, tag)
        for group in fleet.groups.values()
        for tag in group.tags.values()
        if all(_tag_matches(group, tag, one) for one in request.get("Filters") or [])
    ]
    shown, more = page(chosen, request, default=50, most=100)
    return {"Tags": [tag_answer(group, tag) for group, tag in shown], **more}


def _tag_matches(group: Group, tag: Tag, condition: Mapping[str, Any]) -> bool:
    shown = {
        "auto-scaling-group": group.name,
        "key": tag.key,
        "value": tag.value,
        "propagate-at-launch": str(tag.propagate).lower(),
    }
    if condition["Name"] not in shown:
        raise invalid(f"Filter type {condition['Name']} is not correct. Allowed Filter types are: {', '.join(shown)}")
    return shown[condition["Name"]] in (condition.get("Values") or [])


def describe_target_groups(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    arns = fleet.group(request["AutoScalingGroupName"]).settings.get("TargetGroupARNs", [])
    shown, more = page(arns, request, default=100, most=100)
    return {
        "LoadBalancerTargetGroups": [{"LoadBalancerTargetGroupARN": one, "State": "InService"} for one in shown],
        **more,
    }


def describe_traffic_sources(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    sources = fleet.group(request["AutoScalingGroupName"]).settings.get("TrafficSources", [])
    shown, more = page(sources, request, default=50, most=50)
    return {"TrafficSources": [{"TrafficSource": s["Identifier"], "State": "InService", **s} for s in shown], **more}


def start_refresh(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    group = fleet.group(request["AutoScalingGroupName"])
    if any(refresh.ended_at is None for refresh in group.refreshes):
        raise Refused(
            "InstanceRefreshInProgress",
            "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh.",
        )
    refresh = Refresh(fleet.now)
    group.refreshes.append(refresh)
    return {"InstanceRefreshId": refresh.refresh_id}


def cancel_refresh(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    group = fleet.group(request["AutoScalingGroupName"])
    for refresh in group.refreshes:
        if refresh.ended_at is None:
            refresh.status, refresh.ended_at = "Cancelled", fleet.now
            return {"InstanceRefreshId": refresh.refresh_id}
    raise Refused("ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found")


def describe_refreshes(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    group = fleet.group(request["AutoScalingGroupName"])
    ids = request.get("InstanceRefreshIds")
    chosen = [one for one in reversed(group.refreshes) if not ids or one.refresh_id in ids]
    shown, more = page(chosen, request, default=50, most=100)
    return {"InstanceRefreshes": [refresh_answer(group, one) for one in shown], **more}


SHOWN_ACTIONS = {
    "DescribeAutoScalingGroups": describe_groups,
    "DescribeAutoScalingInstances": describe_instances,
    "DescribeScalingActivities": describe_activities,
    "DescribeTags": describe_tags,
    "DescribeLoadBalancerTargetGroups": describe_target_groups,
    "DescribeTrafficSources": describe_traffic_sources,
    "DescribeWarmPool": lambda fleet, request: {"Instances": []},
    "StartInstanceRefresh": start_refresh,
    "CancelInstanceRefresh": cancel_refresh,
    "DescribeInstanceRefreshes": describe_refreshes,
}
