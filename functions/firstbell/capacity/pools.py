"""A pool: one Auto Scaling group, and how pods come to it and fit on it. Filled from the operator's file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from firstbell.capacity.resources import Resources
from firstbell.capacity.scheduling import selects, tolerated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from firstbell.capacity.cluster_view import Pod
    from firstbell.capacity.idle_policy import IdlePolicy
    from firstbell.capacity.scheduling import Taint, Toleration

Mode = Literal["act", "observe"]


@dataclass(frozen=True, slots=True)
class Networking:
    """How the VPC CNI hands out addresses on the pool's nodes; it decides the maximum of pods a node takes."""

    prefix_delegation: bool = False
    custom_networking: bool = False
    reserved_enis: int = 0
    ipv6: bool = False
    max_pods: int | None = None
    """The operator's own kubelet maxPods; wins over every rule."""


@dataclass(frozen=True, slots=True)
class InterruptionPolicy:
    """What the pool does when its instances go."""

    spot: Literal["observe", "cordon", "drain"] = "drain"
    """At a Spot interruption warning."""
    rebalance: Literal["observe", "cordon", "drain"] = "observe"
    """On a rebalance recommendation, which only says that an interruption has become likelier."""
    rebalance_ttl_minutes: float = 30.0
    """After so long without anything that followed, a recommendation's cordon is taken back."""
    before_minutes: float = 60.0
    """How long before a scheduled change the drain starts."""
    at_deadline: Literal["force", "leave"] = "force"
    """Whether pods that are still there when power goes are deleted with what grace is left, or left to it."""
    hook: str = "firstbell-drain"
    """Name of the terminate lifecycle hook that is ours to answer; every other hook is left alone."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as the operator's file names it, in the operator's order.

    Exactly one of `group` (Auto Scaling group name) and `nodegroup` (managed node group, resolved at run time) is set.
    """

    name: str
    pod: Resources
    """What one user pod of this pool asks for where a signal does not say (pods=1)."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that the pool's nodes carry and its pods select."""
    taints: tuple[Taint, ...] = ()
    """Registration taints that the pool's nodes carry and its pods tolerate."""
    tolerations: tuple[Toleration, ...] = ()
    """What a user pod tolerates; the operator's file may add to those derived from `taints`."""
    group: str | None = None
    nodegroup: str | None = None
    mode: Mode = "act"
    networking: Networking = field(default_factory=Networking)
    lead_minutes: float | None = None
    """None = "auto": measured p95 of request-to-Ready + 10 %."""
    fallback: tuple[str, ...] = ()
    spot: bool = False
    stateful: bool = False
    preemptible: Mapping[str, str] = field(default_factory=dict)
    """Labels of pods whose places are free (JupyterHub user-placeholders)."""
    interruption: InterruptionPolicy = field(default_factory=InterruptionPolicy)
    idle: IdlePolicy | None = None
    """When its idle nodes go; None = never."""


def pool_of(pod: Pod, pools: Sequence[Pool]) -> Pool | None:
    """The first pool, in the operator's order, whose labels the pod selects and whose taints it tolerates.

    A selector on keys that the pool does not label (a zone, an architecture) does not decide membership. A pool that
    has labels and no repelling taint is joined only by pods that select one of its labels; else every pod without a
    selector would count as a student of it.
    """
    return next((pool for pool in pools if _belongs(pod, pool)), None)


def _belongs(pod: Pod, pool: Pool) -> bool:
    asked = {key: value for key, value in pod.node_selector.items() if key in pool.labels}
    guarded = any(taint.repels for taint in pool.taints)
    if pool.labels and not asked and not guarded:
        return False
    return selects(asked, pool.labels) and tolerated(pool.taints, pod.tolerations)
