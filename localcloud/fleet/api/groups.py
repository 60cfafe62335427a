"""Auto Scaling's actions on groups: create, update, delete, desired capacity, processes, tags, load balancers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from localcloud.fleet import groups, wording
from localcloud.fleet.announcements import trial_notice
from localcloud.fleet.api.specification import (
    LISTS,
    check_sizes,
    kept_settings,
    read_hook,
    read_offers,
    read_subnets,
    read_tags,
)
from localcloud.fleet.errors import Refused, invalid
from localcloud.fleet.fleet import Fleet
from localcloud.fleet.state import PROCESSES, Group

DEFAULT_COOLDOWN_SECONDS = 300


def create_group(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    name = request["AutoScalingGroupName"]
    if name in fleet.groups:
        raise Refused(
            "AlreadyExists",
            f"AutoScalingGroup by this name already exists - A group with the name {name} already exists",
        )
    minimum, maximum = int(request["MinSize"]), int(request["MaxSize"])
    desired = int(request.get("DesiredCapacity", minimum))
    check_sizes(minimum, maximum, desired)
    settings = kept_settings(request)
    group = Group(
        name=name,
        arn=f"arn:aws:autoscaling:{fleet.region}:{fleet.account}:autoScalingGroup:{uuid.uuid4()}:autoScalingGroupName/{name}",
        created_at=fleet.now,
        min_size=minimum,
        max_size=maximum,
        desired=desired,
        offers=read_offers(settings, fleet.compute),
        subnets=read_subnets(request, fleet.compute),
        settings={**settings, **{one: list(request[one]) for one in LISTS if one in request}},
        tags=read_tags(request),
        why=wording.created(fleet.now, desired),
    )
    for hook in request.get("LifecycleHookSpecificationList") or []:
        group.hooks[hook["LifecycleHookName"]] = read_hook(group, hook)
    fleet.groups[name] = group
    for hook in group.hooks.values():
        if hook.target_arn:
            fleet.announcer.notify(hook.target_arn, trial_notice(group, fleet.account, fleet.now))
    fleet.reconcile_soon(group)
    return {}


def update_group(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """A new minimum above, or maximum below, the desired capacity moves it; one that the caller gives must fit.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_UpdateAutoScalingGroup.html
    """
    group = _living_group(fleet, request)
    minimum = int(request.get("MinSize", group.min_size))
    maximum = int(request.get("MaxSize", group.max_size))
    desired = int(request.get("DesiredCapacity", min(max(group.desired, minimum), maximum)))
    check_sizes(minimum, maximum, desired)
    settings = {**group.settings, **kept_settings(request)}
    if "LaunchTemplate" in request:
        settings.pop("MixedInstancesPolicy", None)
    if "MixedInstancesPolicy" in request:
        settings.pop("LaunchTemplate", None)
    if "LaunchTemplate" in request or "MixedInstancesPolicy" in request:
        group.offers = read_offers(settings, fleet.compute)
    if request.get("VPCZoneIdentifier") or request.get("AvailabilityZones"):
        group.subnets = read_subnets(request, fleet.compute)
    group.settings = settings
    group.min_size, group.max_size = minimum, maximum
    if desired != group.desired:
        group.why = wording.constraints_updated(fleet.now, minimum, maximum, group.desired, desired)
        group.desired = desired
    fleet.reconcile_soon(group)
    return {}


def delete_group(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """Force-deletes without lifecycle hooks; without force only an empty group goes."""
    group = fleet.group(request["AutoScalingGroupName"])
    if group.members and not request.get("ForceDelete"):
        raise Refused(
            "ResourceInUse",
            "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) "
            "still in the group.",
        )
    group.deleting = True
    group.min_size = group.desired = 0
    if not group.members:
        fleet.past_activities += group.activities
        del fleet.groups[group.name]
    for member in list(group.members.values()):
        units = group.units
        cause = wording.shrunk(fleet.now, units, units - member.weight, member.instance_id)
        if member.leaving:
            groups.stop_holding(fleet, group, member)
        groups.terminate(fleet, group, member, cause, hooks=False)
    return {}


def set_desired(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetDesiredCapacity.html"""
    group = _living_group(fleet, request)
    desired = int(request["DesiredCapacity"])
    for word, bound, broken in (
        ("above max", group.max_size, desired > group.max_size),
        ("below min", group.min_size, desired < group.min_size),
    ):
        if broken:
            raise invalid(f"New SetDesiredCapacity value {desired} is {word} value {bound} for the AutoScalingGroup.")
    if request.get("HonorCooldown"):
        _require_cooled_down(fleet, group)
    if desired != group.desired:
        group.why = wording.desired_set(fleet.now, group.desired, desired)
        group.desired = desired
        group.retry_at = 0.0
    fleet.reconcile_soon(group)
    return {}


def _require_cooled_down(fleet: Fleet, group: Group) -> None:
    """https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-scaling-cooldowns.html"""
    cooldown = int(group.settings.get("DefaultCooldown", DEFAULT_COOLDOWN_SECONDS))
    for activity in reversed(group.activities):
        done = activity.ended_at is not None and (
            activity.status == "Failed" or fleet.now >= activity.ended_at + cooldown
        )
        if not done:
            raise Refused(
                "ScalingActivityInProgress",
                f"Scaling activity {activity.activity_id} is in progress and blocks this action",
            )


def _living_group(fleet: Fleet, request: Mapping[str, Any]) -> Group:
    group = fleet.group(request["AutoScalingGroupName"])
    if group.deleting:
        raise Refused("ScalingActivityInProgress", f"AutoScalingGroup {group.name} is being deleted")
    return group


def suspend(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    group = _living_group(fleet, request)
    for process in _processes(request):
        group.suspended[process] = f"User suspended at {wording.stamp(fleet.now)}"
    return {}


def resume(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    group = _living_group(fleet, request)
    for process in _processes(request):
        group.suspended.pop(process, None)
    fleet.reconcile_soon(group)
    return {}


def _processes(request: Mapping[str, Any]) -> tuple[str, ...]:
    """None named means all."""
    named = tuple(request.get("ScalingProcesses") or PROCESSES)
    unknown = [one for one in named if one not in PROCESSES]
    if unknown:
        raise invalid(f"{unknown[0]} is not a valid process type. Valid process types are [{', '.join(PROCESSES)}].")
    return named


def create_tags(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    for tag in request["Tags"]:
        fleet.group(tag["ResourceId"]).tags |= read_tags({"Tags": [tag]})
    return {}


def delete_tags(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    for tag in request["Tags"]:
        fleet.group(tag["ResourceId"]).tags.pop(tag["Key"], None)
    return {}


def _attach(name: str) -> Any:
    def attach(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
        attached = _living_group(fleet, request).settings.setdefault(name, [])
        attached += [one for one in request[name] if one not in attached]
        return {}

    return attach


def _detach(name: str) -> Any:
    def detach(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
        settings = _living_group(fleet, request).settings
        settings[name] = [one for one in settings.get(name, []) if one not in request[name]]
        return {}

    return detach


def enable_metrics(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """Remembered and shown; the fleet publishes no metrics."""
    _living_group(fleet, request).settings["EnabledMetrics"] = list(request.get("Metrics") or [])
    return {}


def disable_metrics(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    _living_group(fleet, request).settings.pop("EnabledMetrics", None)
    return {}


GROUP_ACTIONS = {
    "CreateAutoScalingGroup": create_group,
    "UpdateAutoScalingGroup": update_group,
    "DeleteAutoScalingGroup": delete_group,
    "SetDesiredCapacity": set_desired,
    "SuspendProcesses": suspend,
    "ResumeProcesses": resume,
    "CreateOrUpdateTags": create_tags,
    "DeleteTags": delete_tags,
    "AttachLoadBalancerTargetGroups": _attach("TargetGroupARNs"),
    "DetachLoadBalancerTargetGroups": _detach("TargetGroupARNs"),
    "AttachTrafficSources": _attach("TrafficSources"),
    "DetachTrafficSources": _detach("TrafficSources"),
    "EnableMetricsCollection": enable_metrics,
    "DisableMetricsCollection": disable_metrics,
}
