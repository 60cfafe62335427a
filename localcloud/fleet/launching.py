"""Launches of a group: which type where, what fails, and when it is tried again."""

from __future__ import annotations

from localcloud.fleet import machines, wording
from localcloud.fleet.announcements import activity_detail
from localcloud.fleet.faults import LaunchFault
from localcloud.fleet.fleet import Fleet
from localcloud.fleet.selection import emptiest_zone, next_offer, wants_spot
from localcloud.fleet.state import Group, Handover, Member, Offer

RETRY_SECONDS_AT_LEAST = 1.0


def launch_missing(fleet: Fleet, group: Group) -> None:
    """Launch until desired capacity is reached or a launch fails; then the next try comes one boot time later."""
    if not group.runs("Launch") or group.deleting or fleet.now < group.retry_at:
        return
    while group.units - group.handover_units < group.desired:
        if not launch_one(fleet, group, group.why):
            return


def launch_one(
    fleet: Fleet, group: Group, why: str, *, handover: Handover | None = None, zone: str | None = None
) -> bool:
    """Launch one instance; False where the launch failed. Over desired capacity only with a handover."""
    spot = wants_spot(group)
    chosen_zone = zone or emptiest_zone(group)
    offer = next_offer(group, spot=spot)
    units = group.units
    cause = why if handover else wording.sentences((why, wording.started(fleet.now, units, units + offer.weight)))
    fault = fleet.faults.launch_fault(group.name, chosen_zone, offer.instance_type)
    if fault is not None:
        _fail(fleet, group, offer, chosen_zone, cause, fault, spot=spot)
        return False
    _start(fleet, group, offer, chosen_zone, cause, handover, spot=spot)
    return True


def _start(
    fleet: Fleet, group: Group, offer: Offer, zone: str, cause: str, handover: Handover | None, *, spot: bool
) -> None:
    machine = machines.start(fleet, group, offer, zone, spot=spot)
    description = f"Launching a new EC2 instance: {machine.instance_id}"
    activity = fleet.new_activity(group, description, cause, zone)
    activity.status, activity.progress = "PreInService", 30
    member = Member(machine, offer.template, offer.weight, weighted=group.weighted, activity=activity)
    group.members[machine.instance_id] = member
    if handover:
        group.handovers[machine.instance_id] = handover


def _fail(fleet: Fleet, group: Group, offer: Offer, zone: str, cause: str, fault: LaunchFault, *, spot: bool) -> None:
    fleet.faults.take(fault)
    mixed = bool(group.settings.get("MixedInstancesPolicy"))
    message = wording.launch_failure(fault.kind, offer.instance_type, zone, group.zones, mixed=mixed, spot=spot)
    description = f"Launching a new EC2 instance.  Status Reason: {message}"
    activity = fleet.new_activity(group, description, cause, zone)
    activity.end("Failed", fleet.now, message)
    fleet.journal.event("launch-failed", group.name, "", kind=fault.kind, message=message, zone=zone)
    fleet.tell_group(group, "EC2 Instance Launch Unsuccessful", activity_detail(activity, ""))
    group.retry_at = fleet.now + max(RETRY_SECONDS_AT_LEAST, fleet.boot_time(group))
    fleet.reconcile_at(group.retry_at, group)
