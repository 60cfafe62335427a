"""From RunInstances to a node and away again.

Instance states: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html
"""

from __future__ import annotations

from dataclasses import replace

from localcloud.fleet.fleet import RUNNING_SHARE, SHUTDOWN_SHARE, Fleet
from localcloud.fleet.node_objects import node_name
from localcloud.fleet.nodeconfig import NodeConfig, read_tags, read_user_data
from localcloud.fleet.state import Group, Machine, Offer

SPOT_NOTICE_SECONDS = 120.0


def start(fleet: Fleet, group: Group, offer: Offer, zone: str, *, spot: bool) -> Machine:
    """Start an instance of this offer; it runs, and its node joins, in the course of its boot time."""
    template = replace(offer.template, spot=spot)
    tags = {tag.key: tag.value for tag in group.tags.values() if tag.propagate} | {
        "aws:autoscaling:groupName": group.name,
        "aws:ec2launchtemplate:id": template.template_id,
        "aws:ec2launchtemplate:version": template.number,
    }
    instance_id, private_ip = fleet.compute.launch(offer.instance_type, group.subnets[zone], template, tags)
    machine = Machine(
        instance_id=instance_id,
        instance_type=offer.instance_type,
        zone=zone,
        subnet_id=group.subnets[zone],
        private_ip=private_ip,
        node_name=node_name(private_ip, fleet.region),
        group_name=group.name,
        spot=spot,
        launched_at=fleet.now,
        boot_seconds=fleet.boot_time(group),
        node_config=_node_config(group, template.user_data),
        joins=fleet.faults.next_joins(group.name),
    )
    fleet.machines[instance_id] = machine
    fleet.journal.event("launched", group.name, instance_id, instance_type=offer.instance_type, zone=zone)
    fleet.tell_machine(machine, "EC2 Instance State-change Notification", {"state": "pending"})
    fleet.timers.after(machine.boot_seconds * RUNNING_SHARE, lambda: _runs(fleet, machine))
    fleet.timers.after(machine.boot_seconds, lambda: _has_booted(fleet, machine))
    return machine


def _node_config(group: Group, user_data: str) -> NodeConfig:
    """What the node does is in its user data; the node-template tags stand in where that says nothing."""
    config = read_user_data(user_data)
    if config.stated:
        return config
    return replace(read_tags({tag.key: tag.value for tag in group.tags.values()}), max_pods=config.max_pods)


def _runs(fleet: Fleet, machine: Machine) -> None:
    if machine.state != "pending" or fleet.compute.state(machine.instance_id) != "pending":
        return
    _change_state(fleet, machine, "running")
    fleet.on_running(machine)


def _has_booted(fleet: Fleet, machine: Machine) -> None:
    if machine.joins and machine.state == "running":

        def joined() -> None:
            machine.joined = True
            fleet.journal.event("joined", machine.group_name, machine.instance_id, node=machine.node_name)

        fleet.registrar.join(machine, joined)


def shut_down(fleet: Fleet, machine: Machine) -> None:
    """End an instance as EC2 does: shutting-down, then terminated. Ending it twice does nothing."""
    if machine.state in ("shutting-down", "terminated"):
        return
    _change_state(fleet, machine, "shutting-down")
    seconds = max(0.05, min(5.0, machine.boot_seconds * SHUTDOWN_SHARE))
    fleet.timers.after(seconds, lambda: _is_gone(fleet, machine))


def _is_gone(fleet: Fleet, machine: Machine) -> None:
    if machine.state == "terminated":
        return
    _change_state(fleet, machine, "terminated")
    _forget_node(fleet, machine)
    fleet.on_ended(machine)


def _forget_node(fleet: Fleet, machine: Machine) -> None:
    def left() -> None:
        if machine.joined:
            fleet.journal.event("left", machine.group_name, machine.instance_id, node=machine.node_name)

    fleet.registrar.leave(machine, left)


def _change_state(fleet: Fleet, machine: Machine, state: str) -> None:
    machine.state = state
    fleet.compute.set_state(machine.instance_id, state)
    if state != "stopped":
        fleet.journal.event(state, machine.group_name, machine.instance_id)
    fleet.tell_machine(machine, "EC2 Instance State-change Notification", {"state": state})


def notice_outside_changes(fleet: Fleet) -> None:
    """See what somebody did with EC2's own API (TerminateInstances, StopInstances) and let the groups react."""
    for machine in list(fleet.machines.values()):
        if not machine.alive:
            continue
        state = fleet.compute.state(machine.instance_id)
        if state in ("terminated", "shutting-down"):
            _change_state(fleet, machine, "shutting-down")
            _is_gone(fleet, machine)
        elif state in ("stopped", "stopping"):
            _change_state(fleet, machine, "stopped")
            fleet.on_ended(machine)


def interrupt_spot(fleet: Fleet, machine: Machine, *, notice_seconds: float = SPOT_NOTICE_SECONDS) -> None:
    """Say that EC2 will take the instance back, and take it back.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
    """
    fleet.journal.event("spot-warning", machine.group_name, machine.instance_id, notice_seconds=notice_seconds)
    fleet.tell_machine(machine, "EC2 Spot Instance Interruption Warning", {"instance-action": "terminate"})
    fleet.timers.after(notice_seconds, lambda: shut_down(fleet, machine))


def recommend_rebalance(fleet: Fleet, machine: Machine) -> None:
    """Say that the instance is at an elevated risk; a group with Capacity Rebalancing replaces it.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
    """
    fleet.journal.event("rebalance-recommendation", machine.group_name, machine.instance_id)
    fleet.tell_machine(machine, "EC2 Instance Rebalance Recommendation", {})
    fleet.on_at_risk(machine)
