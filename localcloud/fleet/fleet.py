"""The fleet: everything that the modules beside this one work on, under one lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from localcloud.fleet.announcements import Announcer, instance_arn
from localcloud.fleet.compute import Compute
from localcloud.fleet.errors import group_not_found, invalid
from localcloud.fleet.faults import Faults
from localcloud.fleet.journal import Journal
from localcloud.fleet.registrar import Registrar
from localcloud.fleet.state import Activity, Group, Machine, Member
from localcloud.fleet.timers import Timers

BOOT_TAG = "localcloud:boot-seconds"
RUNNING_SHARE = 0.3
"""EC2 says `running` after this share of the boot; the rest is the operating system and the kubelet."""
SHUTDOWN_SHARE = 0.1
ACTIVITIES_KEPT = 2000


def _nobody_listens(_: object) -> None:
    """Until groups are attached."""


@dataclass
class Fleet:
    """Groups by name, machines by instance id, and the parts of the world that they act on."""

    account: str
    region: str
    boot_seconds: float
    compute: Compute
    registrar: Registrar
    announcer: Announcer
    journal: Journal
    timers: Timers = field(default_factory=Timers)
    faults: Faults = field(default_factory=Faults)
    groups: dict[str, Group] = field(default_factory=dict)
    machines: dict[str, Machine] = field(default_factory=dict)
    past_activities: list[Activity] = field(default_factory=list)
    """Of groups that were deleted."""
    on_running: Callable[[Machine], None] = _nobody_listens
    on_ended: Callable[[Machine], None] = _nobody_listens
    on_at_risk: Callable[[Machine], None] = _nobody_listens
    reconcile: Callable[[Group], None] = _nobody_listens
    """How groups hear of their machines, set by `groups.attach`: machines need not know groups."""

    @property
    def now(self) -> float:
        return self.timers.clock()

    def group(self, name: str) -> Group:
        """The group of this name; Refused where there is none."""
        if name not in self.groups:
            raise group_not_found(name)
        return self.groups[name]

    def member(self, instance_id: str) -> tuple[Group, Member]:
        """The group that has this instance, and the member; Refused where no group has it."""
        for group in self.groups.values():
            if instance_id in group.members:
                return group, group.members[instance_id]
        raise invalid(f"Instance Id not found - No managed instance found for instance ID: {instance_id}")

    def reconcile_soon(self, group: Group) -> None:
        self.timers.after(0, lambda: self.reconcile(group))

    def reconcile_at(self, when: float, group: Group) -> None:
        self.timers.at(when, lambda: self.reconcile(group))

    def boot_time(self, group: Group) -> float:
        """Seconds from launch to the node's joining: the control door's, else the group's tag's, else the cloud's."""
        if group.name in self.faults.boot_seconds:
            return self.faults.boot_seconds[group.name]
        tag = group.tags.get(BOOT_TAG)
        return float(tag.value) if tag else self.boot_seconds

    def new_activity(self, group: Group, description: str, cause: str, zone: str = "") -> Activity:
        """Record an activity in progress. Its details name zone and subnet, as AWS's do."""
        details = {"Subnet ID": group.subnets.get(zone, ""), "Availability Zone": zone} if zone else {}
        activity = Activity(group.name, description, cause, self.now, details)
        group.activities.append(activity)
        del group.activities[:-ACTIVITIES_KEPT]
        return activity

    def tell_group(self, group: Group, kind: str, detail: Mapping[str, Any], machine: Machine | None = None) -> None:
        resources = [group.arn] + ([instance_arn(machine, self.account, self.region)] if machine else [])
        self.announcer.event("aws.autoscaling", kind, resources, detail, self.now)

    def tell_machine(self, machine: Machine, kind: str, detail: Mapping[str, Any]) -> None:
        resources: Sequence[str] = [instance_arn(machine, self.account, self.region)]
        self.announcer.event("aws.ec2", kind, resources, {"instance-id": machine.instance_id, **detail}, self.now)
