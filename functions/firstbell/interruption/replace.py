"""Doing what `replacement` decided: at a Spot notice, before the instance is gone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firstbell.capacity.scheduling import selects
from firstbell.capacity.sight import pods_by_node, see_pool
from firstbell.cloud.drain_ledger import Detached
from firstbell.cluster.cordons import mark_of
from firstbell.errors import FirstbellError
from firstbell.interruption.notices import Kind
from firstbell.interruption.replacement import Doomed, Replacement, plan_replacement

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from firstbell.capacity.cluster_view import Node, Pod
    from firstbell.capacity.groups import Group
    from firstbell.capacity.pools import Pool
    from firstbell.cloud.autoscaling import AutoScaling
    from firstbell.cloud.drain_ledger import DrainLedger
    from firstbell.cloud.ledger import Ledger
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.interruption.working import Pass
    from firstbell.settings import Cluster
    from firstbell.telemetry import Telemetry

WORTH_IT_SECONDS = 30.0
"""With less time than this to the deadline Auto Scaling's own replacement is hardly later."""
TOO_LATE = "left: too late to be sooner than the group itself"


@dataclass(frozen=True, slots=True)
class Replacer:
    settings: Cluster
    cluster: KubernetesCluster
    autoscaling: AutoScaling
    ledger: Ledger
    drains: DrainLedger
    telemetry: Telemetry
    clock: Callable[[], float]
    holder: str
    """Unique to this invocation: it holds the pool's lease while it decides."""

    def replace(self, passes: Sequence[Pass]) -> None:
        """Decides for these Spot drains, and acts. Its failure holds up no eviction: what could not be decided now is
        decided in the next pass."""
        for one in passes:
            if one.drain.deadline - self.clock() < WORTH_IT_SECONDS:
                one.drain = replace(one.drain, replacement=TOO_LATE)
        due = [one for one in passes if not one.drain.replacement]
        for pool, group_name in {one.pool.name: (one.pool, one.drain.group) for one in due}.values():
            own = [one for one in due if one.pool is pool]
            try:
                self._decide_alone(pool, group_name, own)
            except FirstbellError as error:
                self.telemetry.log.warning("replacement not decided", pool=pool.name, error=str(error))

    def _decide_alone(self, pool: Pool, group_name: str, due: Sequence[Pass]) -> None:
        """Of a storm's invocations one decides, for every doomed node of the pool, so that no free place is promised
        twice; under the lease that serialises our writers of desired. The others find it done in their next pass."""
        lease = self.ledger.lease(pool.name, self.holder, self.clock(), changed=False)
        if lease is None:
            return
        try:
            group = self.autoscaling.describe({group_name} - {""}).get(group_name)
            plan = self._decide(pool, group, due) if group else Replacement()
        finally:
            self.ledger.abandon(lease)
        for one in due:
            one.drain = replace(one.drain, replacement=_said(plan, one.drain.instance_id))

    def _decide(self, pool: Pool, group: Group, due: Sequence[Pass]) -> Replacement:
        own = {one.drain.instance_id for one in due}
        if not own & {m.instance_id for m in group.members if m.lifecycle == "InService"}:
            return Replacement()
        if pool.stateful:
            self.telemetry.log.error("pods that must not be lost run on Spot instances", pool=pool.name)
            self.telemetry.emit("StatefulOnSpot", len(due), pool=pool.name)
        nodes, on_node = self.cluster.nodes(), pods_by_node(self.cluster.pods())
        doomed = _doomed(pool, group, own, nodes, on_node)
        plan = plan_replacement(
            pool,
            group,
            see_pool(
                pool,
                self.settings.pools,
                group,
                nodes,
                on_node,
                system_namespaces=self.settings.system_namespaces,
                expected_overhead={},
                now=self.clock(),
            ),
            doomed,
            {one.node.instance_id for one in doomed},
            system_namespaces=self.settings.system_namespaces,
            reserved=any(r.pool == pool.name and r.open_at(self.clock()) for r in self.ledger.read().reservations),
        )
        self._detach(pool, group, plan.replaced, decrement=False)
        self._detach(pool, group, plan.released, decrement=True)
        return plan

    def _detach(self, pool: Pool, group: Group, instance_ids: Sequence[str], *, decrement: bool) -> None:
        """Remembered first: what is detached belongs to nobody else, and tick ends what Spot did not take. One that
        turns out to be a member still is forgotten by tick."""
        if not instance_ids:
            return
        since = self.clock()
        self.drains.remember_detached(Detached(i, pool.name, group.name, since) for i in instance_ids)
        self.autoscaling.detach(group.name, instance_ids, decrement=decrement)
        if decrement:
            self.telemetry.emit("InstancesReleased", len(instance_ids), pool=pool.name)
        else:
            self.telemetry.emit("InstancesReplaced", len(instance_ids), pool=pool.name)


def _doomed(
    pool: Pool, group: Group, own: Collection[str], nodes: Iterable[Node], on_node: dict[str, list[Pod]]
) -> list[Doomed]:
    """Every node of the pool that a Spot notice holds back: ours, and those of other invocations."""
    known = {m.instance_id for m in group.members} | set(own)
    found = []
    for node in nodes:
        mark = mark_of(node, "interruption")
        if mark is None or not (mark.kind == Kind.SPOT or node.instance_id in own):
            continue
        if node.instance_id in known or (pool.labels and selects(pool.labels, node.labels)):
            found.append(Doomed(node, mark.since, tuple(on_node.get(node.name, ()))))
    return found


def _said(plan: Replacement, instance_id: str) -> str:
    if instance_id in plan.replaced:
        return "replaced"
    if instance_id in plan.released:
        return "released"
    return f"left: {plan.left.get(instance_id, 'not InService any more: decided before, or gone')}"
