"""Auto Scaling's actions on lifecycle hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.fleet import holding
from localcloud.fleet.announcements import trial_notice
from localcloud.fleet.api.answers import hook_answer
from localcloud.fleet.api.specification import read_hook
from localcloud.fleet.errors import invalid
from localcloud.fleet.fleet import Fleet
from localcloud.fleet.state import Group, Member, Wait


def put_hook(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """A hook with a notification target gets AWS's test message there."""
    group = fleet.group(request["AutoScalingGroupName"])
    hook = read_hook(group, request)
    group.hooks[hook.name] = hook
    if hook.target_arn:
        fleet.announcer.notify(hook.target_arn, trial_notice(group, fleet.account, fleet.now))
    return {}


def delete_hook(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """Outstanding actions are completed: ABANDON for launching, CONTINUE for terminating instances.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DeleteLifecycleHook.html
    """
    group = fleet.group(request["AutoScalingGroupName"])
    hook = group.hooks.pop(request["LifecycleHookName"], None)
    if hook is None:
        raise _unknown_hook(group, request["LifecycleHookName"])
    for member in group.members.values():
        for wait in member.waits:
            if wait.hook.name == hook.name and not wait.result:
                result = "CONTINUE" if member.leaving else "ABANDON"
                holding.complete(fleet, group, member, wait, result, "the hook was deleted")
    fleet.reconcile_soon(group)
    return {}


def describe_hooks(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    group = fleet.group(request["AutoScalingGroupName"])
    names = request.get("LifecycleHookNames") or list(group.hooks)
    return {"LifecycleHooks": [hook_answer(group.hooks[name]) for name in names if name in group.hooks]}


def complete_action(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CompleteLifecycleAction.html"""
    group, member, wait = _find(fleet, request)
    result = request["LifecycleActionResult"]
    if result not in ("CONTINUE", "ABANDON"):
        raise invalid(f"Lifecycle action result must be either CONTINUE or ABANDON, not {result}")
    holding.complete(fleet, group, member, wait, result, "completed by a user")
    fleet.reconcile_soon(group)
    return {}


def record_heartbeat(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RecordLifecycleActionHeartbeat.html"""
    group, _, wait = _find(fleet, request)
    holding.heartbeat(fleet, wait)
    fleet.reconcile_soon(group)
    return {}


def _find(fleet: Fleet, request: Mapping[str, Any]) -> tuple[Group, Member, Wait]:
    """The open action that the caller means, by instance or by token."""
    group = fleet.group(request["AutoScalingGroupName"])
    name, token, instance_id = (
        request["LifecycleHookName"],
        request.get("LifecycleActionToken"),
        request.get("InstanceId"),
    )
    if not token and not instance_id:
        raise invalid("Either a LifecycleActionToken or an InstanceId is required")
    if name not in group.hooks:
        raise _unknown_hook(group, name)
    for member in group.members.values():
        for wait in member.waits:
            named = instance_id in (None, member.instance_id) and token in (None, wait.token)
            if named and wait.hook.name == name and not wait.result:
                return group, member, wait
    said = f"instance ID {instance_id}" if instance_id else f"token {token}"
    raise invalid(f"No active Lifecycle Action found with {said}")


def _unknown_hook(group: Group, name: str) -> Exception:
    return invalid(f"No Lifecycle Hook found with name {name} for Auto Scaling group {group.name}")


HOOK_ACTIONS = {
    "PutLifecycleHook": put_hook,
    "DeleteLifecycleHook": delete_hook,
    "DescribeLifecycleHooks": describe_hooks,
    "CompleteLifecycleAction": complete_action,
    "RecordLifecycleActionHeartbeat": record_heartbeat,
}
