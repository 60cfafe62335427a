"""What can be found about a node of a pool that is quiet, and what can be done about it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firstbell.capacity.budgets import Budget
    from firstbell.capacity.cluster_view import Node, Pod
    from firstbell.capacity.groups import Member
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.resources import Resources
    from firstbell.idle.occupants import Holder


class Finding(StrEnum):
    """Why a node stays, or that it need not. The values are what Pool Kept and the metrics carry."""

    IDLE = "idle"
    BUSY = "busy"
    BLOCKED = "blocked"
    """No user pod, but a pod that a person has to decide about."""
    NEEDED = "needed"
    """A reservation, or a pod that waits, will want it."""
    YOUNG = "not idle for long enough"
    HELD = "held"
    """An annotation forbids scale-down."""
    CORDONED = "cordoned by somebody else"
    LEAVING = "being removed by somebody else"
    UNREACHABLE = "not ready"
    NOT_JOINED = "no node"
    NOT_IN_SERVICE = "not in service"
    PROTECTED = "scale-in protection"
    INSTANCE_REFRESH = "instance refresh"
    SCALING_IN = "scaling in"
    AZ_REBALANCE = "AZRebalance"
    MIN_SIZE = "MinSize"


BLOCKING = frozenset(
    {Finding.BLOCKED, Finding.CORDONED, Finding.HELD, Finding.PROTECTED, Finding.AZ_REBALANCE, Finding.MIN_SIZE}
)
"""Findings about a node without user pods that do not pass by themselves."""


_OF_UNKNOWN_USE = (
    Finding.BUSY,
    Finding.LEAVING,
    Finding.UNREACHABLE,
    Finding.NOT_JOINED,
    Finding.NOT_IN_SERVICE,
)


class Step(StrEnum):
    KEEP = "keep"
    CORDON = "cordon"
    WAIT = "wait"
    """Cordoned; the second look is yet to come."""
    REMOVE = "remove"
    UNCORDON = "uncordon"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A member of the group that is not terminating, and its node as it is beneath our own mark."""

    member: Member
    node: Node | None = None
    pods: tuple[Pod, ...] = ()
    marked_at: float | None = None
    """Since when our idle cordon stands; None where it does not."""


@dataclass(frozen=True, slots=True)
class Home:
    """A node that takes pods, and what is left on it."""

    node: Node
    free: Resources


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a node is judged by, besides itself."""

    pool: Pool
    system_namespaces: tuple[str, ...] = ("kube-system",)
    budgets: tuple[Budget, ...] = ()
    homes: tuple[Home, ...] = ()
    """Nodes of the whole cluster that take pods now."""
    whole_cluster_goes: bool = False
    """Whether no node of the cluster is to stay: then no system pod has anything left to serve."""
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    candidate: Candidate
    finding: Finding
    detail: str = ""
    holders: tuple[Holder, ...] = ()
    moving: tuple[Pod, ...] = ()
    """System pods to evict first; they have a home elsewhere."""
    step: Step = Step.KEEP

    @property
    def instance_id(self) -> str:
        return self.candidate.member.instance_id

    @property
    def node_name(self) -> str:
        return self.candidate.node.name if self.candidate.node else ""

    @property
    def without_users(self) -> bool:
        """Whether the node is known to have no user pod, whatever else keeps it."""
        return self.finding not in _OF_UNKNOWN_USE

    @property
    def goes(self) -> bool:
        """Whether the node may be removed now: nothing has to move out of it first."""
        return self.step is Step.REMOVE and not self.moving
