"""Auto Scaling groups: read whole, changed by one call at a time, each refusal named."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from firstbell.cloud.groups import parse_activity, parse_group
from firstbell.cloud.launch_templates import LaunchTemplates
from firstbell.cloud.refusals import Refused, translated
from firstbell.errors import Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from firstbell.capacity.groups import Activity, Group
    from firstbell.cloud.session import Clients

PER_PAGE = 100
MOST_ACTIVITIES = 300
DETACH_PER_CALL = 20
"""https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DetachInstances.html"""
PROTECT_PER_CALL = 50
"""https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetInstanceProtection.html"""

UNDERWAY = frozenset({"Pending", "InProgress", "Cancelling", "RollbackInProgress", "Baking"})
"""https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstanceRefresh.html"""


@dataclass(frozen=True, slots=True)
class LifecycleHook:
    """A hook of one group. `transition` is Auto Scaling's (`autoscaling:EC2_INSTANCE_TERMINATING`)."""

    name: str
    transition: str
    heartbeat_timeout_seconds: int
    global_timeout_seconds: int
    """The most that heartbeats can hold an instance: 48 hours or 100 times the timeout, whichever is less.
    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LifecycleHook.html"""
    default_result: str


@dataclass(frozen=True, slots=True)
class LifecycleAction:
    """One instance waiting at one hook. These three name the action; the token in its event says no more than they do,
    and Auto Scaling does not require it.
    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CompleteLifecycleAction.html"""

    group: str
    hook: str
    instance_id: str


class AutoScaling:
    """Every method may raise RetryLater (throttled, ScalingActivityInProgress, ResourceContention), AccessDenied and
    Refused; NotFound and Conflict where it says so."""

    def __init__(self, clients: Clients, clock: Callable[[], float] = time.time) -> None:
        self._clients = clients
        self._templates = LaunchTemplates(clients, clock)

    def describe(self, names: Collection[str]) -> dict[str, Group]:
        """Name -> group. A group that does not exist is absent."""
        groups: dict[str, Group] = {}
        for chunk in _chunks(sorted(names), PER_PAGE):
            with translated("autoscaling:DescribeAutoScalingGroups"):
                pages = self._clients.autoscaling.get_paginator("describe_auto_scaling_groups").paginate(
                    AutoScalingGroupNames=chunk, PaginationConfig={"PageSize": PER_PAGE}
                )
                described = [group for page in pages for group in page["AutoScalingGroups"]]
            groups |= {g["AutoScalingGroupName"]: parse_group(g, self._templates.instance_type) for g in described}
        return groups

    def set_desired(self, name: str, units: int) -> None:
        """Raises Conflict where `units` is outside of MinSize..MaxSize as they are now, NotFound without the group."""
        with _group_refusals("autoscaling:SetDesiredCapacity"):
            self._clients.autoscaling.set_desired_capacity(
                AutoScalingGroupName=name, DesiredCapacity=units, HonorCooldown=False
            )

    def update_min_size(self, name: str, units: int) -> None:
        """Raises Conflict where `units` is above MaxSize, NotFound without such a group."""
        with _group_refusals("autoscaling:UpdateAutoScalingGroup"):
            self._clients.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=units)

    def activities(self, name: str, since: float) -> list[Activity]:
        """Activities that started at or after `since` (Unix seconds), newest first; at most the newest 300."""
        found: list[Activity] = []
        with _group_refusals("autoscaling:DescribeScalingActivities"):
            pages = self._clients.autoscaling.get_paginator("describe_scaling_activities").paginate(
                AutoScalingGroupName=name, PaginationConfig={"PageSize": PER_PAGE, "MaxItems": MOST_ACTIVITIES}
            )
            for page in pages:
                found += (parse_activity(activity) for activity in page["Activities"])
                if found and found[-1].started_at < since:
                    break
        recent = (activity for activity in found if activity.started_at >= since)
        return sorted(recent, key=lambda activity: activity.started_at, reverse=True)

    def terminate_with_decrement(self, instance_id: str) -> None:
        """End exactly this member, and ask for one fewer. Raises NotFound if it is no member of any group, Conflict if
        that would go below MinSize."""
        with _group_refusals("autoscaling:TerminateInstanceInAutoScalingGroup"):
            self._clients.autoscaling.terminate_instance_in_auto_scaling_group(
                InstanceId=instance_id, ShouldDecrementDesiredCapacity=True
            )

    def detach(self, name: str, instance_ids: Sequence[str], *, decrement: bool) -> None:
        """Take InService members out of the group; without `decrement` it launches others in their place.

        Raises Conflict if one is no InService member any more, or `decrement` would go below MinSize. Twenty go at a
        time, each twenty whole or not at all: after an error, read the group to see which went.
        """
        for chunk in _chunks(instance_ids, DETACH_PER_CALL):
            with _group_refusals("autoscaling:DetachInstances"):
                self._clients.autoscaling.detach_instances(
                    AutoScalingGroupName=name, InstanceIds=chunk, ShouldDecrementDesiredCapacity=decrement
                )

    def set_protection(self, name: str, instance_ids: Sequence[str], *, protected: bool) -> None:
        """Scale-in protection of InService members. Raises Conflict if one is no longer there."""
        for chunk in _chunks(instance_ids, PROTECT_PER_CALL):
            with _group_refusals("autoscaling:SetInstanceProtection"):
                self._clients.autoscaling.set_instance_protection(
                    AutoScalingGroupName=name, InstanceIds=chunk, ProtectedFromScaleIn=protected
                )

    def instance_refresh_running(self, name: str) -> bool:
        """Whether an instance refresh replaces members now."""
        with _group_refusals("autoscaling:DescribeInstanceRefreshes"):
            answer = self._clients.autoscaling.describe_instance_refreshes(AutoScalingGroupName=name, MaxRecords=10)
        return any(refresh.get("Status") in UNDERWAY for refresh in answer["InstanceRefreshes"])

    def lifecycle_hooks(self, name: str) -> list[LifecycleHook]:
        with _group_refusals("autoscaling:DescribeLifecycleHooks"):
            answer = self._clients.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=name)
        return [
            LifecycleHook(
                name=hook.get("LifecycleHookName", ""),
                transition=hook.get("LifecycleTransition", ""),
                heartbeat_timeout_seconds=hook.get("HeartbeatTimeout", 3600),
                global_timeout_seconds=hook.get("GlobalTimeout", 172_800),
                default_result=hook.get("DefaultResult", "ABANDON"),
            )
            for hook in answer["LifecycleHooks"]
        ]

    def complete_lifecycle_action(
        self, action: LifecycleAction, result: Literal["CONTINUE", "ABANDON"] = "CONTINUE"
    ) -> bool:
        """Let the instance go on. False where no action is active any more, which is success too (case 28). The wrong
        name of a hook or group is Refused."""
        try:
            with translated("autoscaling:CompleteLifecycleAction"):
                self._clients.autoscaling.complete_lifecycle_action(
                    AutoScalingGroupName=action.group,
                    LifecycleHookName=action.hook,
                    InstanceId=action.instance_id,
                    LifecycleActionResult=result,
                )
        except Refused as error:
            return _still_active(error)
        return True

    def heartbeat(self, action: LifecycleAction) -> bool:
        """Hold the instance for another heartbeat timeout. False where no action is active any more."""
        try:
            with translated("autoscaling:RecordLifecycleActionHeartbeat"):
                self._clients.autoscaling.record_lifecycle_action_heartbeat(
                    AutoScalingGroupName=action.group,
                    LifecycleHookName=action.hook,
                    InstanceId=action.instance_id,
                )
        except Refused as error:
            return _still_active(error)
        return True


@contextmanager
def _group_refusals(operation: str) -> Iterator[None]:
    """Auto Scaling answers nearly every refusal as ValidationError; what it means stands only in the message."""
    try:
        with translated(operation):
            yield
    except Refused as error:
        message = error.message.lower()
        if any(words in message for words in ("above max", "below min", "min-size", "min size", "minsize", "maxsize")):
            raise Conflict(str(error)) from error
        if any(words in message for words in ("not in inservice", "not part of auto scaling group")):
            raise Conflict(str(error)) from error
        if any(words in message for words in ("not found", "does not exist", "no managed instance")):
            raise NotFound(str(error)) from error
        raise


def _still_active(error: Refused) -> bool:
    """False for "No active Lifecycle Action found with token t1" (or instance ID); any other refusal stands."""
    if "no active lifecycle action" in error.message.lower():
        return False
    raise error


def _chunks(values: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(values), size):
        yield list(values[start : start + size])
