"""How a group reacts: a member's way in and out, and the reconciliation of members with desired capacity.

https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
"""

from __future__ import annotations

from collections.abc import Callable

from localcloud.fleet import holding, launching, machines, wording
from localcloud.fleet.announcements import activity_detail
from localcloud.fleet.fleet import Fleet
from localcloud.fleet.selection import fullest_zone, scale_in_victim, unbalanced, zone_counts
from localcloud.fleet.state import LAUNCHING, TERMINATING, Group, Handover, Machine, Member


def attach(fleet: Fleet) -> None:
    """Let the fleet's groups hear of their machines."""

    def as_member(react: Callable[[Fleet, Group, Member], None]) -> Callable[[Machine], None]:
        def hear(machine: Machine) -> None:
            group = fleet.groups.get(machine.group_name)
            if group is not None and machine.instance_id in group.members:
                react(fleet, group, group.members[machine.instance_id])

        return hear

    fleet.on_running = as_member(started)
    fleet.on_ended = as_member(ended)
    fleet.on_at_risk = as_member(replace_at_risk)
    fleet.reconcile = lambda group: reconcile(fleet, group)


def started(fleet: Fleet, group: Group, member: Member) -> None:
    """Its instance runs: hold it by the launch hooks, else put it in service."""
    if member.lifecycle == "Pending" and not holding.hold(fleet, group, member, LAUNCHING, "Pending"):
        _enter_service(fleet, group, member)
    fleet.reconcile_soon(group)


def _enter_service(fleet: Fleet, group: Group, member: Member) -> None:
    member.lifecycle = "InService"
    member.waits.clear()
    member.protected = bool(group.settings.get("NewInstancesProtectedFromScaleIn", False))
    member.activity.end("Successful", fleet.now)
    fleet.journal.event("in-service", group.name, member.instance_id)
    detail = activity_detail(member.activity, member.instance_id)
    fleet.tell_group(group, "EC2 Instance Launch Successful", detail, member.machine)
    handover = group.handovers.pop(member.instance_id, None)
    if handover is not None and group.runs("Terminate"):
        _hand_over(fleet, group, handover)


def _hand_over(fleet: Fleet, group: Group, handover: Handover) -> None:
    """The new member is in service; now the one goes that it was launched for."""
    if handover.instance_id:
        victim = group.members.get(handover.instance_id)
        cause = wording.capacity_rebalanced(fleet.now, handover.instance_id)
    else:
        in_zone = [member for member in group.staying if member.zone == handover.zone]
        victim = scale_in_victim(group, fleet.registrar.busy_pods(), among=in_zone)
        cause = wording.balanced(fleet.now, handover.zone)
    if victim is not None and not victim.leaving:
        units = group.units
        shrunk = wording.shrunk(fleet.now, units, units - victim.weight, victim.instance_id)
        terminate(fleet, group, victim, wording.sentences((cause, shrunk)))


def terminate(fleet: Fleet, group: Group, member: Member, cause: str, *, hooks: bool = True) -> None:
    """Begin to terminate a member; its terminate hooks hold it first. Desired capacity is the caller's business."""
    if member.leaving:
        return
    if member.activity.status not in ("Successful", "Failed"):
        wait = holding.abandoned_wait(member)
        said = wording.abandoned(wait.token, "ABANDON") if wait else "Instance was terminated before it was in service"
        member.activity.end("Cancelled", fleet.now, said)
    member.waits.clear()
    group.handovers.pop(member.instance_id, None)
    description = f"Terminating EC2 instance: {member.instance_id}"
    member.activity = fleet.new_activity(group, description, cause, member.zone)
    member.lifecycle = "Terminating"
    fleet.journal.event("terminating", group.name, member.instance_id)
    if not hooks or not holding.hold(fleet, group, member, TERMINATING, "Terminating"):
        _let_go(fleet, group, member)
    fleet.reconcile_soon(group)


def stop_holding(fleet: Fleet, group: Group, member: Member) -> None:
    """End a leaving member's wait at once, as a forced deletion of its group does."""
    if holding.held(member):
        _let_go(fleet, group, member)


def _let_go(fleet: Fleet, group: Group, member: Member) -> None:
    member.lifecycle = "Terminating:Proceed" if member.waits else "Terminating"
    member.waits.clear()
    if member.machine.state == "terminated":
        ended(fleet, group, member)
    else:
        machines.shut_down(fleet, member.machine)


def ended(fleet: Fleet, group: Group, member: Member) -> None:
    """EC2 has ended its instance: a member that was leaving is gone, any other is unhealthy."""
    if member.leaving and not holding.held(member):
        group.members.pop(member.instance_id, None)
        member.activity.end("Successful", fleet.now)
        detail = activity_detail(member.activity, member.instance_id)
        fleet.tell_group(group, "EC2 Instance Terminate Successful", detail, member.machine)
        if group.deleting and not group.members:
            fleet.past_activities += group.activities
            fleet.groups.pop(group.name, None)
            return
    fleet.reconcile_soon(group)


def replace_at_risk(fleet: Fleet, group: Group, member: Member) -> None:
    """Capacity Rebalancing: launch a replacement first, then terminate the member at risk.

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-capacity-rebalancing.html
    """
    waiting = any(handover.instance_id == member.instance_id for handover in group.handovers.values())
    if group.settings.get("CapacityRebalance") and group.runs("Launch") and not member.leaving and not waiting:
        cause = wording.capacity_rebalanced(fleet.now, member.instance_id)
        launching.launch_one(fleet, group, cause, handover=Handover(instance_id=member.instance_id), zone=member.zone)


def reconcile(fleet: Fleet, group: Group) -> None:
    """Bring the group's members towards its desired capacity, as far as its processes run."""
    if fleet.groups.get(group.name) is not group:
        return
    for member in list(group.members.values()):
        _follow_waits(fleet, group, member)
        _check_health(fleet, group, member)
    if group.runs("ReplaceUnhealthy") and group.runs("Terminate"):
        for member in [one for one in group.staying if one.health == "Unhealthy"]:
            terminate(fleet, group, member, wording.unhealthy(fleet.now, member.unhealthy_because))
    wanted = group.units - group.handover_units
    if wanted < group.desired:
        group.refused_scale_in = None
        launching.launch_missing(fleet, group)
    elif wanted > group.desired:
        _scale_in(fleet, group)
    else:
        group.refused_scale_in = None
        _rebalance_zones(fleet, group)


def _follow_waits(fleet: Fleet, group: Group, member: Member) -> None:
    if not member.waits:
        return
    holding.expire(fleet, group, member)
    if (deadline := holding.next_deadline(member)) is not None:
        fleet.reconcile_at(deadline, group)
    elif member.leaving:
        _let_go(fleet, group, member)
    elif holding.abandoned_wait(member):
        terminate(fleet, group, member, wording.unhealthy(fleet.now, wording.USER_HEALTH))
    else:
        member.lifecycle = "Pending:Proceed"
        _enter_service(fleet, group, member)


def _check_health(fleet: Fleet, group: Group, member: Member) -> None:
    """https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-health-checks.html"""
    if member.machine.alive or member.leaving or member.health == "Unhealthy" or not group.runs("HealthCheck"):
        return
    member.health, member.unhealthy_because = "Unhealthy", wording.EC2_HEALTH
    fleet.journal.event("unhealthy", group.name, member.instance_id, because=member.unhealthy_because)


def _scale_in(fleet: Fleet, group: Group) -> None:
    if not group.runs("Terminate"):
        return
    busy_pods = fleet.registrar.busy_pods()
    while group.units - group.handover_units > group.desired:
        candidates = [member for member in group.staying if member.instance_id not in group.handovers]
        victim = scale_in_victim(group, busy_pods, among=candidates)
        if victim is None:
            _say_protected(fleet, group)
            return
        units = group.units
        cause = wording.shrunk(fleet.now, units, units - victim.weight, victim.instance_id)
        terminate(fleet, group, victim, wording.sentences((group.why, cause)))


def _say_protected(fleet: Fleet, group: Group) -> None:
    """https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-instance-protection.html"""
    surplus = group.units - group.desired
    protected = [member for member in group.staying if member.protected and member.weight <= surplus]
    if protected and group.refused_scale_in != group.desired:
        group.refused_scale_in = group.desired
        fleet.new_activity(group, wording.ALL_PROTECTED, group.why).end("Failed", fleet.now, wording.ALL_PROTECTED)


def _rebalance_zones(fleet: Fleet, group: Group) -> None:
    """Launch in the emptiest zone, and terminate in the fullest once that one is in service."""
    quiet = not group.handovers and all(member.in_service for member in group.members.values())
    may_launch = group.runs("AZRebalance") and group.runs("Launch") and fleet.now >= group.retry_at
    if not (quiet and unbalanced(group) and may_launch):
        return
    fullest = fullest_zone(group)
    if all(member.protected for member in group.staying if member.zone == fullest):
        return
    cause = wording.balancing(fleet.now, zone_counts(group))
    launching.launch_one(fleet, group, cause, handover=Handover(zone=fullest))
