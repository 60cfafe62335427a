"""The nodes that a group may launch: what they offer, from the best source there is."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from firstbell.capacity.allocatable import estimated_allocatable
from firstbell.capacity.daemonsets import daemonset_overhead
from firstbell.capacity.density import CannotPlace, NodeShape
from firstbell.capacity.instance_types import node_labels
from firstbell.capacity.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstbell.capacity.cluster_view import DaemonSet
    from firstbell.capacity.groups import Group
    from firstbell.capacity.instance_types import InstanceTypeFacts
    from firstbell.capacity.pool_state import PoolState
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.sight import PoolSight
    from firstbell.cloud.instance_types import InstanceTypes


def remembered_overhead(state: PoolState) -> dict[str, Resources]:
    """Instance type -> what DaemonSets took on the last live node of that type."""
    return {name: Resources(**facts["overhead"]) for name, facts in state.facts.items()}


def remember(state: PoolState, seen: PoolSight) -> PoolState:
    """The state with what the pool's Ready nodes offer now. The smallest of each type counts."""
    facts = dict(state.facts)
    nodes = sorted((n for n in seen.nodes if n.ready), key=lambda n: n.allocatable.memory_bytes, reverse=True)
    for node in nodes:
        overhead = seen.overhead.get(node.instance_type)
        if overhead is not None:
            facts[node.instance_type] = {"allocatable": asdict(node.allocatable), "overhead": asdict(overhead)}
    return replace(state, facts=facts)


@dataclass(frozen=True, slots=True)
class Launchable:
    """The nodes that a group may launch."""

    shapes: tuple[NodeShape, ...] = ()
    obstacle: str = ""
    """Why one of its types can be no node of the pool, or is not known: no density holds for such a group."""


def launchable(
    pool: Pool,
    group: Group,
    state: PoolState,
    instance_types: InstanceTypes,
    daemonsets: Callable[[], list[DaemonSet]],
) -> Launchable:
    """One shape a type: remembered of a live node, else computed (`estimated`).

    `state` has been brought up to date with `remember`, so that live nodes come first.
    """
    if not group.instance_types:
        return Launchable(obstacle=f"group {group.name} names no instance type and has no instance to go by")
    to_compute = [name for name in group.instance_types if name not in state.facts]
    described = instance_types.describe(to_compute).facts if to_compute else {}
    shapes = []
    for name in group.instance_types:
        weight = group.weights.get(name, 1)
        if name in state.facts:
            known = {part: Resources(**amounts) for part, amounts in state.facts[name].items()}
            shapes.append(NodeShape(name, known["allocatable"], known["overhead"], estimated=False, weight=weight))
        elif name not in described:
            return Launchable(obstacle=f"EC2 knows no instance type {name} in this region")
        else:
            try:
                shapes.append(_computed(pool, described[name], daemonsets(), weight))
            except CannotPlace as error:
                return Launchable(obstacle=error.reason)
    return Launchable(tuple(shapes))


def _computed(pool: Pool, facts: InstanceTypeFacts, daemonsets: list[DaemonSet], weight: int) -> NodeShape:
    return NodeShape(
        facts.name,
        estimated_allocatable(facts, pool.networking, managed=pool.nodegroup is not None),
        daemonset_overhead(daemonsets, node_labels(pool.labels, facts), pool.taints),
        estimated=True,
        weight=weight,
    )
