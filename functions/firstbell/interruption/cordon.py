"""Holding a doomed node back: the cordon, and its load balancers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firstbell.capacity.drains import DRILL, GIVEN_BACK
from firstbell.cloud.drain_ledger import Held
from firstbell.cluster.cordons import CordonMark, mark_of
from firstbell.errors import Conflict, FirstbellError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstbell.capacity.cluster_view import Node
    from firstbell.cloud.drain_ledger import DrainLedger
    from firstbell.cloud.load_balancers import LoadBalancers
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.interruption.working import Pass
    from firstbell.telemetry import Telemetry

ATTEMPTS = 5
"""How often a cordon that another writer was first with is tried on the node as it is then (case 26)."""


@dataclass(frozen=True, slots=True)
class Cordoner:
    cluster: KubernetesCluster
    ledger: DrainLedger
    load_balancers: LoadBalancers
    telemetry: Telemetry
    clock: Callable[[], float]

    def hold_back(self, one: Pass) -> None:
        """Cordons the pass's node unless it is; raises Conflict, ClusterUnreachable, AccessDenied where it can't be."""
        if one.node is None:
            return
        drain, now = one.drain, self.clock()
        kind = DRILL if drain.drill else drain.kind
        if not held_back(one.node, kind):
            if kind in GIVEN_BACK:  # remembered first: what is cordoned is given back even if we are killed here
                until = now + one.pool.interruption.rebalance_ttl_minutes * 60
                self.ledger.remember_held(Held(drain.instance_id, one.node.name, drain.pool, until))
            fresh = mark_of(one.node, "interruption") is None
            try:
                one.node = cordoned(self.cluster, one.node, CordonMark("interruption", kind, now, drain.deadline))
            except NotFound:
                one.node = None
                return
            one.count("SecondsToCordon", now - drain.noticed_at, pool=drain.pool, kind=drain.kind)
            if fresh:
                drain = replace(drain, cordoned_at=self.clock(), announced=False, concluded=False, deregistered=False)
        one.drain = replace(drain, node=one.node.name, cordoned_at=drain.cordoned_at or now)

    def take_from_load_balancers(self, one: Pass) -> None:
        """Deregisters the instance from its group's target groups now, not when it ends. Its failure holds up nothing:
        the node's own label takes it out of those that Kubernetes manages."""
        if one.drain.deregistered or one.group is None:
            return
        try:
            if one.group.target_group_arns:
                self.load_balancers.deregister(one.group.target_group_arns, one.drain.instance_id)
            one.drain = replace(one.drain, deregistered=True)
        except FirstbellError as error:
            self.telemetry.log.warning(
                "instance could not be deregistered", instance_id=one.drain.instance_id, error=str(error)
            )


def held_back(node: Node, kind: str) -> bool:
    """Whether our own cordon of this kind stands on the node, whole."""
    mark = mark_of(node, "interruption")
    return mark is not None and mark.kind == kind and node.unschedulable and mark.taint in node.taints


def cordoned(cluster: KubernetesCluster, node: Node, mark: CordonMark) -> Node:
    """Cordons the node as it is now. Raises Conflict after `ATTEMPTS`, NotFound where it is gone."""
    for _ in range(ATTEMPTS - 1):
        try:
            return cluster.cordon(node, mark)
        except Conflict:
            node = cluster.node(node.name)
    return cluster.cordon(node, mark)
