"""Doing what `replacement` decided: at a Spot notice, before the instance is gone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firstbell.capacity.scheduling import selects
from firstbell.capacity.sight import pods_by_node, see_pool
from firstbell.cloud.drain_ledger import Detached
from firstbell.cluster.cordons import mark_of
from firstbell.errors import Conflict, FirstbellError, NotFound
from firstbell.interruption.notices import Kind
from firstbell.interruption.replacement import Doomed, Replacement, plan_replacement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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
SIZED_BY_ANOTHER = "not needed, but another run of ours is bringing the pool to size"
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
    """Unique to this invocation: it holds the pool's lease while desired is lowered."""

    def replace(self, passes: Sequence[Pass]) -> None:
        """Decides once for each of these Spot drains, and acts. Its failure holds up no eviction: what could not be
        decided now is decided in the next pass."""
        for one in passes:
            if one.drain.deadline - self.clock() < WORTH_IT_SECONDS:
                one.drain = replace(one.drain, replacement=TOO_LATE)
        due = [one for one in passes if not one.drain.replacement]
        if not due:
            return
        try:
            nodes, on_node = self.cluster.nodes(), pods_by_node(self.cluster.pods())
            reserved = {r.pool for r in self.ledger.read().reservations if r.open_at(self.clock())}
            groups = self.autoscaling.describe({one.drain.group for one in due if one.drain.group})
            for (pool_name, group_name), pool in {(one.pool.name, one.drain.group): one.pool for one in due}.items():
                own = [one for one in due if (one.pool.name, one.drain.group) == (pool_name, group_name)]
                if group_name in groups:
                    self._replace_in(pool, groups[group_name], own, nodes, on_node, pool_name in reserved)
        except FirstbellError as error:
            self.telemetry.log.warning("replacement not decided", error=str(error))

    def _replace_in(
        self,
        pool: Pool,
        group: Group,
        due: Sequence[Pass],
        nodes: Sequence[Node],
        on_node: dict[str, list[Pod]],
        reserved: bool,
    ) -> None:
        if pool.stateful:
            self.telemetry.log.error("pods that must not be lost run on Spot instances", pool=pool.name)
            self.telemetry.emit("StatefulOnSpot", len(due), pool=pool.name)
        sight = see_pool(
            pool,
            self.settings.pools,
            group,
            nodes,
            on_node,
            system_namespaces=self.settings.system_namespaces,
            expected_overhead={},
            now=self.clock(),
        )
        plan = plan_replacement(
            pool,
            group,
            sight,
            _doomed(pool, group, due, nodes, on_node),
            {one.drain.instance_id for one in due},
            system_namespaces=self.settings.system_namespaces,
            reserved=reserved,
        )
        plan = self._carry_out(pool, group, plan)
        for one in due:
            one.drain = replace(one.drain, replacement=_said(plan, one.drain.instance_id))

    def _carry_out(self, pool: Pool, group: Group, plan: Replacement) -> Replacement:
        """Returns what was done of the plan."""
        if plan.replaced:
            self._detach(pool, group, plan.replaced, decrement=False)
            self.telemetry.emit("InstancesReplaced", len(plan.replaced), pool=pool.name)
        if not plan.released:
            return plan
        lease = self.ledger.lease(pool.name, self.holder, self.clock(), changed=False)
        if lease is None:
            return Replacement(plan.replaced, (), {**plan.left, **dict.fromkeys(plan.released, SIZED_BY_ANOTHER)})
        try:
            self._detach(pool, group, plan.released, decrement=True)
        finally:
            self.ledger.abandon(lease)
        self.telemetry.emit("InstancesReleased", len(plan.released), pool=pool.name)
        return plan

    def _detach(self, pool: Pool, group: Group, instance_ids: Sequence[str], *, decrement: bool) -> None:
        """Remembered first: what is detached belongs to nobody else, and tick ends what Spot did not take. One that
        turns out to be a member still is forgotten by tick."""
        since = self.clock()
        self.drains.remember_detached(Detached(i, pool.name, group.name, since) for i in instance_ids)
        try:
            self.autoscaling.detach(group.name, instance_ids, decrement=decrement)
        except (Conflict, NotFound) as error:
            self.telemetry.log.warning("instances changed while they were detached", error=str(error))


def _doomed(
    pool: Pool, group: Group, due: Iterable[Pass], nodes: Iterable[Node], on_node: dict[str, list[Pod]]
) -> list[Doomed]:
    """Every node of the pool that a Spot notice holds back: ours, and those of other invocations."""
    known = {m.instance_id for m in group.members} | {one.drain.instance_id for one in due}
    found = []
    for node in nodes:
        mark = mark_of(node, "interruption")
        if mark is None or mark.kind != Kind.SPOT:
            continue
        if node.instance_id in known or (pool.labels and selects(pool.labels, node.labels)):
            found.append(Doomed(node, mark.since, tuple(on_node.get(node.name, ()))))
    return found


def _said(plan: Replacement, instance_id: str) -> str:
    if instance_id in plan.replaced:
        return "replaced"
    if instance_id in plan.released:
        return "released"
    return f"left: {plan.left.get(instance_id, 'its node is gone')}"
