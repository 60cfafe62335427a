"""What one invocation knows of the instances in its batch: read once, at the same time, each list whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firstbell.errors import AccessDenied, NotFound, RetryLater
from firstbell.interruption.notices import Interruption
from firstbell.interruption.policies import HookTimes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from concurrent.futures import Executor

    from firstbell.capacity.cluster_view import Node
    from firstbell.capacity.groups import Group
    from firstbell.capacity.pools import Pool
    from firstbell.cloud.autoscaling import AutoScaling
    from firstbell.cloud.capacity_reservations import CapacityReservations
    from firstbell.cloud.drain_ledger import DrainLedger, DrainView
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.interruption.intake import Asked
    from firstbell.settings import Cluster

MOST_SINGLE_READS = 20
"""With more nodes than this to look at, one list of all is cheaper."""
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"


@dataclass(frozen=True, slots=True)
class Surroundings:
    view: DrainView
    groups: Mapping[str, Group]
    """Pool name -> its group, where it exists."""
    nodes: Mapping[str, Node]
    """Instance id -> its node."""
    unreadable: RetryLater | AccessDenied | None
    """Why the cluster could not be read: then an absent node means nothing (case 62)."""
    pools: Mapping[str, Pool]
    hooks: Mapping[tuple[str, str], HookTimes] = field(default_factory=dict)
    """(group, hook) -> its times, of the hooks that the batch names and that exist."""

    def group_name(self, pool: Pool) -> str:
        group = self.groups.get(pool.name)
        return group.name if group else ""

    def nothing_there(self, instance_id: str) -> bool:
        """Whether the instance has neither a node nor a drain. Not known while the cluster is unreadable."""
        return self.unreadable is None and instance_id not in self.nodes and instance_id not in self.view.drains

    def pool_of(self, instance_id: str, hook_group: str = "") -> Pool | None:
        """The pool of an instance: of its drain, of the group that it is a member of, or of its lifecycle action."""
        drain = self.view.drains.get(instance_id)
        if drain is not None and drain.pool in self.pools:
            return self.pools[drain.pool]
        for name, group in self.groups.items():
            if group.name == hook_group or any(m.instance_id == instance_id for m in group.members):
                return self.pools[name]
        return None


@dataclass(frozen=True, slots=True)
class Surveyor:
    settings: Cluster
    ledger: DrainLedger
    autoscaling: AutoScaling
    reservations: CapacityReservations
    cluster: KubernetesCluster
    group_name: Callable[[Pool], str]
    threads: Executor

    def instances(self, asked: Iterable[Asked]) -> dict[str, tuple[str, ...]]:
        """Message id -> the instances that it is about. Raises RetryLater where EC2 does not say."""
        found: dict[str, tuple[str, ...]] = {}
        for one in asked:
            notice = one.notice
            if not isinstance(notice, Interruption):
                found[one.message.id] = (notice.instance_id,)
            elif notice.reservation_id:
                found[one.message.id] = tuple(self.reservations.instances(notice.reservation_id))
            else:
                found[one.message.id] = notice.instance_ids
        return found

    def survey(self, asked: Collection[Asked], instance_ids: Collection[str]) -> Surroundings:
        """Raises RetryLater where the ledger or Auto Scaling does not answer; the cluster's silence is kept instead.

        Passes of drains under way, which are most messages, know their pool and their node's name: they cost no list.
        """
        view = self.ledger.read(instance_ids)
        drains = view.drains
        settled = all(
            not isinstance(one.notice, Interruption)
            and (drain := drains.get(one.notice.instance_id)) is not None
            and drain.deregistered
            for one in asked
        )
        groups = None if settled else self.threads.submit(self._groups)
        hooks = None if settled else self.threads.submit(self._hooks, asked)
        nodes: dict[str, Node] = {}
        unreadable: RetryLater | AccessDenied | None = None
        try:
            nodes = self._nodes(instance_ids, {i: drains[i].node for i in instance_ids if i in drains})
        except (RetryLater, AccessDenied) as error:
            unreadable = error
        return Surroundings(
            view=view,
            groups=groups.result() if groups else {},
            nodes=nodes,
            unreadable=unreadable,
            pools={pool.name: pool for pool in self.settings.pools},
            hooks=hooks.result() if hooks else {},
        )

    def _nodes(self, instance_ids: Collection[str], names: Mapping[str, str]) -> dict[str, Node]:
        """The instances' nodes: by name where a drain knows it, else from one list, by providerID."""
        known = {i: name for i, name in names.items() if name}
        if len(known) > MOST_SINGLE_READS:
            known = {}
        found = dict(zip(known, self.threads.map(self._node, known.values()), strict=True))
        nodes = {i: node for i, node in found.items() if node is not None and node.instance_id == i}
        unknown = [i for i in instance_ids if i not in known]
        return nodes | (self.cluster.nodes_of_instances(unknown) if unknown else {})

    def _node(self, name: str) -> Node | None:
        try:
            return self.cluster.node(name)
        except NotFound:
            return None

    def _groups(self) -> dict[str, Group]:
        names = {pool.name: self.group_name(pool) for pool in self.settings.pools}
        described = self.autoscaling.describe(set(names.values()))
        return {pool: described[name] for pool, name in names.items() if name in described}

    def _hooks(self, asked: Iterable[Asked]) -> dict[tuple[str, str], HookTimes]:
        """Only of our own hooks: the times of others are nobody's business here."""
        ours = {pool.interruption.hook for pool in self.settings.pools}
        calls = (one.notice.hook for one in asked if isinstance(one.notice, Interruption) and one.notice.hook)
        named = {call.group for call in calls if call.hook in ours}
        return {
            (group, hook.name): HookTimes(hook.heartbeat_timeout_seconds, hook.global_timeout_seconds)
            for group in sorted(named & self._own_groups())
            for hook in self.autoscaling.lifecycle_hooks(group)
            if hook.transition == TERMINATING
        }

    def _own_groups(self) -> set[str]:
        return {self.group_name(pool) for pool in self.settings.pools}
