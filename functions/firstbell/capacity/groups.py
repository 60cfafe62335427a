"""An Auto Scaling group as it was read: the parts that sizing is computed from. `firstbell.cloud` fills them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Member:
    """An instance of the group. `lifecycle` is Auto Scaling's LifecycleState (Pending, InService...)."""

    instance_id: str
    lifecycle: str
    instance_type: str
    zone: str
    weight: int = 1
    healthy: bool = True
    protected_from_scale_in: bool = False

    @property
    def terminating(self) -> bool:
        return self.lifecycle.startswith("Terminat")

    @property
    def counted(self) -> bool:
        """Whether its units stand in the group's desired capacity (Detached, Standby and Terminating ones do not)."""
        return not self.terminating and self.lifecycle in (
            "Pending",
            "Pending:Wait",
            "Pending:Proceed",
            "InService",
            "EnteringStandby",
        )


@dataclass(frozen=True, slots=True)
class Group:
    """One Auto Scaling group. Capacities are in the group's own units (weights), not instances."""

    name: str
    desired: int
    min_size: int
    max_size: int
    members: tuple[Member, ...] = ()
    suspended: frozenset[str] = frozenset()
    weights: Mapping[str, int] = field(default_factory=dict)
    """Instance type -> weighted capacity of the mixed instances policy; empty = every instance is one unit."""
    instance_types: tuple[str, ...] = ()
    """Every type that the group may launch, in the policy's order."""
    zones: tuple[str, ...] = ()
    capacity_rebalance: bool = False
    target_group_arns: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def living_units(self) -> int:
        """Units of every counted member."""
        return sum(m.weight for m in self.members if m.counted)

    @property
    def unlaunched_units(self) -> int:
        """Units asked for and not launched yet."""
        return max(0, self.desired - self.living_units)


@dataclass(frozen=True, slots=True)
class Activity:
    """A scaling activity (autoscaling:DescribeScalingActivities). Times are Unix seconds."""

    activity_id: str
    status: str
    description: str
    cause: str
    status_message: str
    started_at: float
    ended_at: float = 0.0
    """When a launch came into service or a termination ended; 0 while in progress."""
