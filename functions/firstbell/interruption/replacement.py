"""Which doomed Spot instances are replaced now, and which are let go for good. Pure.

A detached instance runs on until Spot takes it, while Auto Scaling already launches its replacement (desired kept) or
forgets it (desired lowered with it): two minutes sooner than Auto Scaling would notice by itself.
https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DetachInstances.html
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firstbell.capacity.demand import is_user_pod
from firstbell.capacity.density import NodeShape
from firstbell.capacity.placement import Demand, PodShape, place
from firstbell.capacity.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from firstbell.capacity.cluster_view import Node, Pod
    from firstbell.capacity.groups import Group, Member
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.sight import PoolSight

PENDING = ""
"""Key of the demand of pods that wait for a node already (some were evicted a moment ago)."""


@dataclass(frozen=True, slots=True)
class Doomed:
    """A cordoned node that a Spot notice takes, and the pods that it still runs."""

    node: Node
    noticed_at: float
    pods: tuple[Pod, ...]

    @property
    def order(self) -> tuple[float, str]:
        return self.noticed_at, self.node.instance_id


@dataclass(frozen=True, slots=True)
class Replacement:
    """What becomes of each instance: one of the three."""

    replaced: tuple[str, ...] = ()
    """Detached with desired kept: Auto Scaling launches another."""
    released: tuple[str, ...] = ()
    """Detached with desired lowered: nothing is needed in its place."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Instance id -> why it stays in its group, which replaces it when it is gone."""


def plan_replacement(
    pool: Pool,
    group: Group,
    sight: PoolSight,
    doomed: Iterable[Doomed],
    mine: Collection[str],
    *,
    system_namespaces: Sequence[str],
    reserved: bool,
) -> Replacement:
    """Decides for `mine`, of all `doomed` of the pool, what their pods need beyond the headroom.

    Several invocations share a storm. Each counts the pods of every node noticed before its own first, so that no free
    place is promised twice, and what those need, or what is in flight already, is not bought again. `reserved`: live
    reservations want the pool's room, so nothing is let go.
    """
    members = {m.instance_id: m for m in group.members}
    ordered = sorted(doomed, key=lambda one: one.order)
    own = [one for one in ordered if one.node.instance_id in mine]
    left = {one.node.instance_id: why for one in own if (why := _why_left(pool, group, members, one))}
    own = [one for one in own if one.node.instance_id not in left]
    if not own:
        return Replacement(left=left)
    deciding = {one.node.instance_id for one in own}
    before = [one for one in ordered if one.node.instance_id not in deciding and one.order < own[-1].order]
    user_pods = _UserPods(pool, system_namespaces)
    nodes_before = _new_nodes(pool, group, sight, before, user_pods, own[0])
    nodes_with = _new_nodes(pool, group, sight, [*before, *own], user_pods, own[0])
    needed = max(0, nodes_with - max(nodes_before, _in_flight(group, sight)))
    return _share_out(group, members, own, needed, reserved=reserved, left=left)


@dataclass(frozen=True, slots=True)
class _UserPods:
    pool: Pool
    system_namespaces: Sequence[str]

    def of(self, pods: Iterable[Pod]) -> list[Pod]:
        """Those that will need a place elsewhere. The successor of an owned pod that is ending waits already; a bare
        one, a notebook, has none until its student comes back."""
        moving = (p for p in pods if not (p.terminating and p.owner_kind))
        return [p for p in moving if is_user_pod(p, self.pool, self.system_namespaces)]


def _why_left(pool: Pool, group: Group, members: Mapping[str, Member], one: Doomed) -> str:
    member = members.get(one.node.instance_id)
    if pool.nodegroup:
        return "its managed node group drains and replaces by itself"
    if group.capacity_rebalance:
        return "the group's CapacityRebalance replaces it"
    if member is None or member.lifecycle != "InService":
        return "not InService"
    if "Launch" in group.suspended:
        return "the group's Launch process is suspended"
    return ""


def _new_nodes(
    pool: Pool, group: Group, sight: PoolSight, doomed: Iterable[Doomed], user_pods: _UserPods, sample: Doomed
) -> int:
    """Nodes like the sample that the pods of `doomed`, and those waiting, need beyond the free places."""
    waiting = [(PENDING, pod) for pod in sight.pending]
    moving = [(one.node.instance_id, pod) for one in doomed for pod in user_pods.of(one.pods)]
    demand = [
        Demand(key, PodShape(pod.requests, tolerations=pod.tolerations, zones=pod.zones), pods=1)
        for key, pod in (*waiting, *moving)
    ]
    agents = (pod.requests for pod in sample.pods if pod.owner_kind == "DaemonSet" or pod.mirror)
    shape = NodeShape(sample.node.instance_type, sample.node.allocatable, overhead=sum(agents, start=Resources()))
    return place(demand, sight.sight.usable, [shape], zones=group.zones, taints=pool.taints).virtual_nodes


def _in_flight(group: Group, sight: PoolSight) -> int:
    """Instances on their way: members without a node yet, and units asked for and not launched."""
    coming = [m for m in group.members if m.counted and m.instance_id not in sight.sight.joined]
    heaviest = max((m.weight for m in group.members), default=1)
    return len(coming) + group.unlaunched_units // heaviest


def _share_out(
    group: Group,
    members: Mapping[str, Member],
    own: Sequence[Doomed],
    needed: int,
    *,
    reserved: bool,
    left: dict[str, str],
) -> Replacement:
    replaced: list[str] = []
    released: list[str] = []
    spare_units = group.desired - group.min_size
    level = len(group.zones) > 1 and "AZRebalance" not in group.suspended
    for one in own:
        instance_id = one.node.instance_id
        weight = members[instance_id].weight
        if len(replaced) < needed or reserved or weight > spare_units:
            replaced.append(instance_id)
        elif level:
            left[instance_id] = "not needed, but lowering the group lets AZRebalance end a busy instance elsewhere"
        else:
            released.append(instance_id)
            spare_units -= weight
    return Replacement(tuple(replaced), tuple(released), left)
