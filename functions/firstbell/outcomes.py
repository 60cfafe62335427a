"""What Firstbell says on its own bus: one frozen dataclass a detail-type.

`schemas/` holds a JSON Schema of each, generated from these classes. Every outcome carries `pool`, `cluster` and
`seconds_since_cause`, and `reference` or `instance_id`. `outcome_id` is the same each time the same thing is said, so a
consumer can drop what an at-least-once delivery repeats. Times are RFC 3339 in UTC.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

SOURCE = "firstbell"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing that is wrong with a signal: the field's path, and what is allowed there."""

    field: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    DETAIL_TYPE: ClassVar[str]

    outcome_id: str
    cluster: str
    pool: str
    seconds_since_cause: float
    schema_version: int = SCHEMA_VERSION

    def as_detail(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRequested(Outcome):
    """The pool was brought to what the reservation needs; nodes may be on their way."""

    DETAIL_TYPE: ClassVar[str] = "Capacity Requested"

    reference: str
    pods: int
    outstanding_pods: int
    """Pods of the reservation that have not arrived yet."""
    placed_pods: int
    """Of those, pods that Ready nodes already have room for."""
    desired_before: int
    desired_after: int
    """Units of the group. Equal to `desired_before` where the headroom, or nodes in flight, suffice."""
    density: int
    """Pods of this shape that fit on one new node."""
    estimated: bool
    """Whether the density was computed rather than taken from a live or remembered node."""
    headroom_known: bool
    """False where the Kubernetes API could not be read: sized as if existing nodes were full."""
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReady(Outcome):
    """Ready nodes cover the reservation for the first time."""

    DETAIL_TYPE: ClassVar[str] = "Capacity Ready"

    reference: str
    pods: int
    arrived_pods: int
    nodes: int
    """Usable nodes of the pool."""
    stages: dict[str, float]
    """Stage clock: seconds from the signal to each stage that was passed (`STAGES` gives their order)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityShort(Outcome):
    """The reservation can't be covered as things stand; it is tried again each minute until it ends."""

    DETAIL_TYPE: ClassVar[str] = "Capacity Short"

    reference: str
    pods: int
    pods_short: int
    reason: str
    detail: str
    remedy: str
    """What the operator can do."""
    fallback: dict[str, int]
    """Fallback pool -> pods of the shortfall that were passed on to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalRejected(Outcome):
    """A signal that asks for something that can't be: said once, never retried."""

    DETAIL_TYPE: ClassVar[str] = "Signal Rejected"

    reference: str
    problems: list[FieldProblem] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDraining(Outcome):
    """An instance goes, or a drill says so, and its node takes no new pods any more."""

    DETAIL_TYPE: ClassVar[str] = "Node Draining"

    instance_id: str
    node: str
    kind: str
    """What announced it: spot, lifecycle, scheduled-change, state-change, rebalance, capacity-reservation..."""
    deadline: str
    """When the instance loses power, or when its pods are no longer waited for."""
    mode: str
    """`observe`: nothing was done, this is what would have been."""
    drill: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDrained(Outcome):
    """No pod is left on the node that had to go."""

    DETAIL_TYPE: ClassVar[str] = "Node Drained"

    instance_id: str
    node: str
    kind: str
    ending: str
    """drained, or vanished: the node left the cluster before its drain was over."""
    evicted: int
    forced: list[str]
    """`namespace/name` of pods that were deleted past their budget or their own grace."""
    seconds_left: float
    """Until the deadline; negative after it."""
    drill: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLeft:
    """A pod that was on the node to the end, as `namespace/name`, and why."""

    pod: str
    forced: bool
    """Whether it was deleted; else it was left to what comes."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainIncomplete(Outcome):
    """The drain is over and pods are still there."""

    DETAIL_TYPE: ClassVar[str] = "Drain Incomplete"

    instance_id: str
    node: str
    kind: str
    ending: str
    """deadline, or unreachable: the node's kubelet confirms nothing any more."""
    evicted: int
    forced: list[str]
    seconds_left: float
    drill: bool
    pods: list[PodLeft]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolScaledToZero(Outcome):
    """The last node of a pool is gone, in a quiet window."""

    DETAIL_TYPE: ClassVar[str] = "Pool Scaled To Zero"

    rule: str
    """Why the pool is quiet: quiet (a weekly window) or holiday."""
    nodes_removed: int
    """Idle nodes that were removed in this window."""
    min_size: int
    """What the group's MinSize will be again when the window ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodKeeping:
    """A pod that keeps its node, as `namespace/name`, and why."""

    pod: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKept:
    """A node that stays in a quiet window, and why."""

    node: str
    """Empty where no node is registered for the instance."""
    instance_id: str
    reason: str
    detail: str
    pods: list[PodKeeping]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolKept(Outcome):
    """Nodes of the pool stay though it is quiet; said again only when that changes."""

    DETAIL_TYPE: ClassVar[str] = "Pool Kept"

    rule: str
    """Why the pool is quiet: quiet (a weekly window) or holiday."""
    nodes: list[NodeKept]
    nodes_removed: int
    """Idle nodes that were removed in this window so far."""
    mode: str
    """`observe`: nothing was done, this is what would have been."""


STAGES: tuple[str, ...] = (
    "signal_received",
    "desired_raised",
    "instance_running",
    "node_joined",
    "node_ready",
    "image_pulled",
    "first_pod_ready",
)


def rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
