"""What of a cluster's nodes and pods concerns one pool: usable nodes, room on them, pods that came or wait. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firstbell.capacity.demand import is_user_pod, pending_pods_of
from firstbell.capacity.joining import Sight
from firstbell.capacity.placement import FreeNode
from firstbell.capacity.pool_state import JOIN_LIMIT_SECONDS
from firstbell.capacity.resources import RESOURCE_NAMES, Resources
from firstbell.capacity.scheduling import selects, tolerated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from firstbell.capacity.cluster_view import Node, Pod
    from firstbell.capacity.groups import Group
    from firstbell.capacity.pools import Pool

SETTLING_SECONDS = 120
"""How long after a node joined its DaemonSet pods may still be missing."""

DOOMING_TAINTS = (
    "firstbell.dev/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/",
    "aws-node-termination-handler/",
    "node.kubernetes.io/out-of-service",
)
"""Keys (or their beginnings) of taints that say that a node is going, not that it is still coming up."""


@dataclass(frozen=True, slots=True)
class PoolSight:
    """One pool's part of the cluster."""

    sight: Sight
    nodes: tuple[Node, ...] = ()
    """Nodes of the group's members, whatever their state."""
    bound: tuple[Pod, ...] = ()
    """User pods on them."""
    pending: tuple[Pod, ...] = ()
    """User pods that wait for this pool, the oldest first."""
    overhead: Mapping[str, Resources] = field(default_factory=dict)
    """Instance type -> what DaemonSet and mirror pods take on a settled node of that type, at most."""

    @property
    def usable_nodes(self) -> list[Node]:
        names = {free.name for free in self.sight.usable}
        return [node for node in self.nodes if node.name in names]


UNSEEN = PoolSight(Sight(known=False))


def pods_by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Node name -> the pods bound to it; unbound pods under the empty name."""
    by_node: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        by_node[pod.node_name].append(pod)
    return by_node


def see_pool(
    pool: Pool,
    pools: Sequence[Pool],
    group: Group,
    nodes: Iterable[Node],
    on_node: Mapping[str, list[Pod]],
    *,
    system_namespaces: Sequence[str],
    expected_overhead: Mapping[str, Resources],
    now: float,
) -> PoolSight:
    """The pool's part of `nodes` and of the pods `on_node` (see `pods_by_node`).

    `expected_overhead` is what is remembered of DaemonSets per instance type: a young node, whose DaemonSet pods have
    yet to come, has that much less room than it shows.
    """
    member_ids = {m.instance_id for m in group.members if m.counted}
    ours = tuple(node for node in nodes if node.instance_id in member_ids)
    overhead = dict(expected_overhead) | _settled_overhead(ours, on_node, now)
    usable = []
    joined, stuck = set(), set()
    for node in ours:
        if _usable(node, pool):
            usable.append(
                FreeNode(
                    name=node.name,
                    free=_free(node, on_node.get(node.name, ()), pool, overhead),
                    zone=node.zone,
                    taints=node.taints,
                )
            )
            joined.add(node.instance_id)
        elif _going(node, pool):
            joined.add(node.instance_id)
        elif now - node.created_at > JOIN_LIMIT_SECONDS:
            joined.add(node.instance_id)
            stuck.add(node.instance_id)
    bound = (p for node in ours for p in on_node.get(node.name, ()))
    return PoolSight(
        sight=Sight(usable=tuple(usable), joined=frozenset(joined), stuck=frozenset(stuck)),
        nodes=ours,
        bound=tuple(p for p in bound if is_user_pod(p, pool, system_namespaces)),
        pending=tuple(pending_pods_of(pool, pools, on_node.get("", ()), system_namespaces)),
        overhead=overhead,
    )


def _usable(node: Node, pool: Pool) -> bool:
    return node.ready and not node.unschedulable and tolerated(node.taints, pool.tolerations)


def _going(node: Node, pool: Pool) -> bool:
    """Whether a node that is not usable was taken out of service. Else it is not Ready yet, or has a start-up taint."""
    obstacles = (t for t in node.taints if t.repels and not tolerated((t,), pool.tolerations))
    return node.unschedulable or any(t.key.startswith(DOOMING_TAINTS) for t in obstacles)


def settling(node: Node, now: float) -> bool:
    """Whether DaemonSet pods may still be missing from the node."""
    return now - node.ready_at <= SETTLING_SECONDS


def _free(node: Node, pods: Iterable[Pod], pool: Pool, overhead: Mapping[str, Resources]) -> Resources:
    agents = taken = Resources()
    for pod in pods:
        if _is_agent(pod):
            agents += pod.requests
        elif not (pool.preemptible and selects(pool.preemptible, pod.labels)):
            taken += pod.requests
    return node.allocatable - taken - _larger(agents, overhead.get(node.instance_type, Resources()))


def _settled_overhead(nodes: Iterable[Node], on_node: Mapping[str, list[Pod]], now: float) -> dict[str, Resources]:
    """What DaemonSet and mirror pods take, measured on nodes that have been Ready for a while."""
    measured: dict[str, Resources] = {}
    for node in nodes:
        if node.ready and not settling(node, now):
            agents = sum((p.requests for p in on_node.get(node.name, ()) if _is_agent(p)), Resources())
            measured[node.instance_type] = _larger(agents, measured.get(node.instance_type, Resources()))
    return measured


def _is_agent(pod: Pod) -> bool:
    return pod.owner_kind == "DaemonSet" or pod.mirror


def _larger(one: Resources, other: Resources) -> Resources:
    """The larger of each resource."""
    return Resources(*(max(getattr(one, name), getattr(other, name)) for name in RESOURCE_NAMES))
