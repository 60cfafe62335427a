"""Auto Scaling's actions on instances: terminate, detach, protect, declare unhealthy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.fleet import groups, wording
from localcloud.fleet.api.answers import activity_answer
from localcloud.fleet.errors import invalid
from localcloud.fleet.fleet import Fleet
from localcloud.fleet.state import Group, Member

DETACHED_AT_MOST = 20
PROTECTED_AT_MOST = 50


def terminate_instance(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """One instance by its id, or several of one group; none of several where one of them is refused.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html
    """
    decrement = bool(request["ShouldDecrementDesiredCapacity"])
    if "InstanceId" in request:
        group, member = fleet.member(request["InstanceId"])
        return {"Activity": _terminate(fleet, group, [member], decrement=decrement)[0]}
    if not request.get("InstanceIds") or "AutoScalingGroupName" not in request:
        raise invalid("Either InstanceId, or InstanceIds and AutoScalingGroupName, must be specified.")
    group = fleet.group(request["AutoScalingGroupName"])
    members = [_own_member(group, instance_id) for instance_id in request["InstanceIds"]]
    return {"Activities": _terminate(fleet, group, members, decrement=decrement)}


def _terminate(fleet: Fleet, group: Group, members: list[Member], *, decrement: bool) -> list[dict[str, Any]]:
    units = sum(member.weight for member in members if not member.leaving)
    if decrement and units and group.desired - units < group.min_size:
        raise invalid(
            f"Currently, desiredSize equals minSize ({group.min_size}). Terminating instance without replacement "
            "will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or "
            "lower group's min size."
        )
    for member in members:
        if not member.leaving:
            change = (group.desired, group.desired - member.weight) if decrement else None
            group.desired -= member.weight if decrement else 0
            group.why = group.why if decrement else ""
            groups.terminate(fleet, group, member, wording.taken_out_by_user(fleet.now, member.instance_id, change))
    return [activity_answer(member.activity, group.arn) for member in members]


def detach(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """The instances stay in EC2 and in the cluster; the group replaces them unless desired is decremented.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DetachInstances.html
    """
    group = fleet.group(request["AutoScalingGroupName"])
    named = list(request.get("InstanceIds") or [])
    if len(named) > DETACHED_AT_MOST:
        raise invalid(f"The number of instances to detach exceeds the limit of {DETACHED_AT_MOST}")
    members = [_own_member(group, instance_id) for instance_id in named]
    for member in members:
        if not member.in_service:
            raise invalid(f"The instance {member.instance_id} is not in InService or Standby.")
    decrement = bool(request["ShouldDecrementDesiredCapacity"])
    units = sum(member.weight for member in members)
    if decrement and group.desired - units < group.min_size:
        raise invalid(
            f"AutoScalingGroup {group.name} has min-size={group.min_size}, max-size={group.max_size}, and "
            f"desired-size={group.desired}. To detach {len(members)} instance{'s' if len(members) > 1 else ''}, "
            "please update the AutoScalingGroup sizes appropriately."
        )
    return {"Activities": [_detach_one(fleet, group, member, decrement=decrement) for member in members]}


def _detach_one(fleet: Fleet, group: Group, member: Member, *, decrement: bool) -> dict[str, Any]:
    change = None
    if decrement:
        change = (group.desired, group.desired - member.weight)
        group.desired -= member.weight
    description = f"Detaching EC2 instance: {member.instance_id}"
    cause = wording.detached(fleet.now, member.instance_id, change)
    activity = fleet.new_activity(group, description, cause, member.zone)
    activity.progress = 50
    answer = activity_answer(activity, group.arn)
    activity.end("Successful", fleet.now)
    del group.members[member.instance_id]
    fleet.journal.event("detached", group.name, member.instance_id, decremented=decrement)
    group.why = ""
    fleet.reconcile_soon(group)
    return answer


def protect(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetInstanceProtection.html"""
    group = fleet.group(request["AutoScalingGroupName"])
    if len(request["InstanceIds"]) > PROTECTED_AT_MOST:
        raise invalid(f"The number of instances exceeds the limit of {PROTECTED_AT_MOST}")
    members = [_own_member(group, instance_id) for instance_id in request["InstanceIds"]]
    for member in members:
        if not member.in_service:
            raise invalid(f"The instance {member.instance_id} is not in InService or EnteringStandby or Standby.")
    for member in members:
        member.protected = bool(request["ProtectedFromScaleIn"])
    fleet.reconcile_soon(group)
    return {}


def set_health(fleet: Fleet, request: Mapping[str, Any]) -> dict[str, Any]:
    """https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetInstanceHealth.html"""
    group, member = fleet.member(request["InstanceId"])
    if request["HealthStatus"] not in ("Healthy", "Unhealthy"):
        raise invalid(f"Valid instance health states are: [Healthy, Unhealthy], not {request['HealthStatus']}")
    member.health, member.unhealthy_because = request["HealthStatus"], wording.USER_HEALTH
    fleet.reconcile_soon(group)
    return {}


def _own_member(group: Group, instance_id: str) -> Member:
    if instance_id not in group.members:
        raise invalid(f"The instance {instance_id} is not part of Auto Scaling group {group.name}.")
    return group.members[instance_id]


INSTANCE_ACTIONS = {
    "TerminateInstanceInAutoScalingGroup": terminate_instance,
    "DetachInstances": detach,
    "SetInstanceProtection": protect,
    "SetInstanceHealth": set_health,
}
