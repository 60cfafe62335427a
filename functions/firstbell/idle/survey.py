"""What one evaluation reads of the cluster, whole or not at all: an error is never "no pods"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.capacity.resources import Resources
from firstbell.capacity.sight import pods_by_node, see_pool
from firstbell.cluster.cordons import mark_of, without_mark
from firstbell.idle.verdicts import Candidate, Home, Surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from firstbell.capacity.budgets import Budget
    from firstbell.capacity.cluster_view import Node, Pod
    from firstbell.capacity.groups import Group, Member
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.sight import PoolSight
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.settings import Cluster


def candidate(member: Member, node: Node | None, pods: Sequence[Pod]) -> Candidate:
    """The member and its node as it is beneath our mark."""
    if node is None:
        return Candidate(member)
    mark = mark_of(node, "idle")
    return Candidate(member, without_mark(node, "idle"), tuple(pods), None if mark is None else mark.since)


@dataclass(frozen=True, slots=True)
class Survey:
    nodes: tuple[Node, ...]
    on_node: Mapping[str, list[Pod]]
    """Node name -> the pods bound to it; unbound pods under the empty name."""
    budgets: tuple[Budget, ...]
    read_at: float

    def candidates(self, group: Group) -> list[Candidate]:
        """Every member of the group that is not terminating."""
        by_instance = {node.instance_id: node for node in self.nodes if node.instance_id}
        found = []
        for member in group.members:
            if not member.terminating:
                node = by_instance.get(member.instance_id)
                found.append(candidate(member, node, self.on_node.get(node.name, ()) if node else ()))
        return found

    def sight(self, pool: Pool, group: Group, settings: Cluster, now: float) -> PoolSight:
        """The pool as it would be without our marks."""
        return see_pool(
            pool,
            settings.pools,
            group,
            [without_mark(node, "idle") for node in self.nodes],
            self.on_node,
            system_namespaces=settings.system_namespaces,
            expected_overhead={},
            now=now,
        )

    def around(self, pool: Pool, settings: Cluster, now: float, *, whole_cluster_goes: bool = False) -> Surroundings:
        return Surroundings(
            pool=pool,
            system_namespaces=settings.system_namespaces,
            budgets=self.budgets,
            homes=tuple(Home(node, self._free(node)) for node in self.nodes if node.ready and not node.unschedulable),
            whole_cluster_goes=whole_cluster_goes,
            now=now,
        )

    def _free(self, node: Node) -> Resources:
        return node.allocatable - sum((p.requests for p in self.on_node.get(node.name, ())), Resources())


def read_survey(cluster: KubernetesCluster, settings: Cluster, now: float) -> Survey:
    """Raises what the API server's refusal or silence raises. Pods are read after nodes, so that one which is bound in
    between is seen on its node."""
    nodes = cluster.nodes()
    pods = cluster.pods()
    system = [p for p in pods if p.bound and p.namespace in settings.system_namespaces]
    settled = {p.uid: p for p in cluster.with_bound_volumes(system)}
    return Survey(
        nodes=tuple(nodes),
        on_node=pods_by_node(settled.get(p.uid, p) for p in pods),
        budgets=tuple(cluster.budgets()),
        read_at=now,
    )
