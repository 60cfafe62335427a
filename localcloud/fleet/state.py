"""What the fleet remembers: machines (EC2 instances and their nodes), groups, members, hooks and activities.

Pure data, times in Unix seconds; what happens to it is in the modules beside this one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localcloud.fleet.nodeconfig import NodeConfig

LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
PROCESSES = (
    "AddToLoadBalancer",
    "AlarmNotification",
    "AZRebalance",
    "HealthCheck",
    "InstanceRefresh",
    "Launch",
    "ReplaceUnhealthy",
    "ScheduledActions",
    "Terminate",
)


@dataclass(frozen=True)
class Template:
    """A launch template's version, as far as a node depends on it."""

    template_id: str
    name: str
    version: str
    """As it was asked for ($Latest, $Default or a number)."""
    number: str
    image_id: str = ""
    instance_type: str = ""
    user_data: str = ""
    spot: bool = False
    security_group_ids: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def reference(self) -> dict[str, str]:
        return {"LaunchTemplateId": self.template_id, "LaunchTemplateName": self.name, "Version": self.version}


@dataclass(frozen=True)
class Offer:
    """One way in which a group may launch: a type, its weight in capacity units, and the template to use."""

    instance_type: str
    template: Template
    weight: int = 1


@dataclass
class Machine:
    """An EC2 instance that the fleet launched, and its node. `state` is EC2's instance state."""

    instance_id: str
    instance_type: str
    zone: str
    subnet_id: str
    private_ip: str
    node_name: str
    group_name: str
    spot: bool
    launched_at: float
    boot_seconds: float
    node_config: NodeConfig
    state: str = "pending"
    joins: bool = True
    joined: bool = False

    @property
    def alive(self) -> bool:
        return self.state in ("pending", "running")


@dataclass
class Activity:
    """A scaling activity. https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Activity.html"""

    group_name: str
    description: str
    cause: str
    started_at: float
    details: Mapping[str, str]
    status: str = "InProgress"
    message: str = ""
    progress: int = 0
    ended_at: float | None = None
    activity_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def end(self, status: str, now: float, message: str = "") -> None:
        self.status, self.message, self.progress, self.ended_at = status, message, 100, now


@dataclass(frozen=True)
class Hook:
    """A lifecycle hook. https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_LifecycleHook.html"""

    name: str
    group_name: str
    transition: str
    heartbeat_seconds: int = 3600
    default_result: str = "ABANDON"
    metadata: str = ""
    target_arn: str = ""
    role_arn: str = ""

    @property
    def global_seconds(self) -> int:
        """48 hours or 100 heartbeats, whichever is smaller."""
        return min(48 * 3600, 100 * self.heartbeat_seconds)


@dataclass
class Wait:
    """One lifecycle action of a member: until when it is held, at most, and what became of it."""

    hook: Hook
    deadline: float
    last: float
    result: str = ""
    token: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass
class Member:
    """An instance as its group sees it."""

    machine: Machine
    template: Template
    weight: int
    weighted: bool
    activity: Activity
    lifecycle: str = "Pending"
    health: str = "Healthy"
    unhealthy_because: str = ""
    protected: bool = False
    waits: list[Wait] = field(default_factory=list)

    @property
    def instance_id(self) -> str:
        return self.machine.instance_id

    @property
    def zone(self) -> str:
        return self.machine.zone

    @property
    def leaving(self) -> bool:
        return self.lifecycle.startswith("Terminat")

    @property
    def in_service(self) -> bool:
        return self.lifecycle == "InService"


@dataclass
class Tag:
    key: str
    value: str
    propagate: bool


@dataclass(frozen=True)
class Handover:
    """A member launched beyond desired; once it is in service, one goes: `instance_id`, or any in `zone`."""

    zone: str = ""
    instance_id: str = ""


@dataclass
class Refresh:
    """An instance refresh, only so far that it can be seen and cancelled: the fleet replaces nothing for it."""

    started_at: float
    status: str = "InProgress"
    ended_at: float | None = None
    refresh_id: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass
class Group:
    """An Auto Scaling group. `settings` holds the request's members that are only shown again."""

    name: str
    arn: str
    created_at: float
    min_size: int
    max_size: int
    desired: int
    offers: tuple[Offer, ...]
    subnets: dict[str, str]
    """Zone -> subnet, in the order in which the group names them."""
    settings: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, Tag] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    hooks: dict[str, Hook] = field(default_factory=dict)
    suspended: dict[str, str] = field(default_factory=dict)
    activities: list[Activity] = field(default_factory=list)
    refreshes: list[Refresh] = field(default_factory=list)
    handovers: dict[str, Handover] = field(default_factory=dict)
    """By the new instance's id."""
    why: str = ""
    """The sentence that says why desired is what it is; it opens the cause of the activities that follow."""
    retry_at: float = 0.0
    refused_scale_in: int | None = None
    """The desired capacity that scale-in protection kept from being reached, said once."""
    deleting: bool = False

    @property
    def staying(self) -> list[Member]:
        return [member for member in self.members.values() if not member.leaving]

    @property
    def units(self) -> int:
        """Capacity units of the members that are not on their way out."""
        return sum(member.weight for member in self.staying)

    @property
    def handover_units(self) -> int:
        """Units that are there only until an older member has gone."""
        return sum(self.members[one].weight for one in self.handovers if one in self.members)

    @property
    def zones(self) -> tuple[str, ...]:
        return tuple(self.subnets)

    @property
    def weighted(self) -> bool:
        return any("WeightedCapacity" in one for one in self.overrides)

    @property
    def overrides(self) -> list[dict[str, Any]]:
        policy = self.settings.get("MixedInstancesPolicy") or {}
        return list((policy.get("LaunchTemplate") or {}).get("Overrides") or [])

    @property
    def distribution(self) -> dict[str, Any]:
        return dict((self.settings.get("MixedInstancesPolicy") or {}).get("InstancesDistribution") or {})

    def runs(self, process: str) -> bool:
        return process not in self.suspended
