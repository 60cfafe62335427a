"""Where pods to come find room: on nodes that there are, then on nodes to be launched.

Exact for pods of one size: whatever order the scheduler takes and wherever it prefers to put them (it spreads:
NodeResourcesFit scores LeastAllocated), a node takes `places` of them and no more.

Pods of several sizes are another matter. Packing them tightly promises room that a spreading scheduler leaves in
pieces: a node that took small pods first may keep a gap just too small for a large one. So with several sizes a node
keeps one place of the largest unpromised, on as many nodes as there are pods of other sizes (`packing.Gap`). Sizes of
which fewer than four fit on a node get no such place: it would cost more than a quarter of the pool, and a pod that is
left over is Pending, which the next reconciliation counts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firstbell.capacity.density import CannotPlace, NodeShape, density, places, units_for
from firstbell.capacity.packing import Bin, Gap, PodShape, fill, gap_for, largest_first
from firstbell.capacity.scheduling import Taint, tolerated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from firstbell.capacity.resources import Resources

__all__ = ["Demand", "FreeNode", "Placement", "PodShape", "Unplaceable", "place"]

NOTHING_TO_LAUNCH = "no usable node has room, and the pool can launch none"


@dataclass(frozen=True, slots=True)
class Demand:
    """`pods` alike, for `key` (a reservation's reference). Keys may repeat; the answer sums them."""

    key: str
    shape: PodShape
    pods: int


@dataclass(frozen=True, slots=True)
class FreeNode:
    """A usable node and what is left on it (allocatable - requests of its pods; may be negative)."""

    name: str
    free: Resources
    zone: str = ""
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class Unplaceable:
    """Pods that no number of new nodes would help, and why, in words."""

    pods: int
    reason: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Pods by key. A key is in a mapping only if it has pods there."""

    on_existing: Mapping[str, int]
    on_virtual: Mapping[str, int]
    unplaceable: Mapping[str, Unplaceable]
    virtual_nodes: int
    """Nodes to launch, if all were of the type that needs most units."""
    virtual_units: int
    """The same in the group's own units (weights): enough whichever of its types Auto Scaling launches."""


def place(
    demand: Iterable[Demand],
    free_nodes: Iterable[FreeNode],
    shapes: Sequence[NodeShape],
    *,
    zones: Sequence[str] = (),
    taints: Sequence[Taint] = (),
) -> Placement:
    """Place `demand`, largest pods first, on `free_nodes` and then on new nodes of `shapes`.

    `shapes`: every type that the pool may launch; empty = it can launch none. `zones`: the group's (empty = taken as
    suitable). `taints`: what its new nodes register with.
    """
    waiting: dict[PodShape, Counter[str]] = {}
    for one in demand:
        if one.pods > 0:
            waiting.setdefault(one.shape, Counter())[one.key] += one.pods
    alike = Counter((node.free, node.zone, tuple(node.taints)) for node in free_nodes)
    bins = [Bin(free, nodes, zone, held) for (free, zone, held), nodes in alike.items()]
    empty_nodes = [shape.free for shape in shapes] or [bin_.free for bin_ in bins]
    sizes: Counter[Resources] = Counter()
    for shape, keys in waiting.items():
        sizes[shape.requests] += keys.total()
    gap = gap_for(sizes, empty_nodes)

    takers = [bin_ for bin_ in bins if any(places(bin_.free, size) for size in sizes)]
    bins = [part for bin_ in takers for part in gap.keep(bin_)]
    on_existing = Counter[str]()
    order = largest_first(waiting, empty_nodes)
    for shape in order:
        bins, left = fill(bins, shape, waiting[shape].total())
        on_existing += _take(waiting[shape], waiting[shape].total() - left)

    unplaceable = _refuse(waiting, shapes, zones, taints)
    pods = {shape: waiting[shape].total() for shape in order if waiting[shape]}
    on_virtual = sum(waiting.values(), Counter[str]())
    units, nodes = max((_launch(shape, pods, replace(gap), zones) for shape in shapes if pods), default=(0, 0))
    return Placement(on_existing, on_virtual, unplaceable, virtual_nodes=nodes, virtual_units=units)


def _take(keys: Counter[str], pods: int) -> Counter[str]:
    """Move `pods` out of `keys`, the first key's first."""
    taken = Counter[str]()
    for key in list(keys):
        taken[key] = min(pods, keys[key])
        pods -= taken[key]
    keys -= taken  # drops what reaches zero
    return +taken


def _refuse(
    waiting: dict[PodShape, Counter[str]], shapes: Sequence[NodeShape], zones: Sequence[str], taints: Sequence[Taint]
) -> dict[str, Unplaceable]:
    """Take out of `waiting` what no new node would help."""
    refused: dict[str, Unplaceable] = {}
    for shape, keys in waiting.items():
        reason = _obstacle(shape, shapes, zones, taints) if keys else ""
        if not reason:
            continue
        for key, pods in keys.items():
            before = refused.get(key, Unplaceable(0, reason))
            refused[key] = replace(before, pods=before.pods + pods)
        keys.clear()
    return refused


def _obstacle(shape: PodShape, shapes: Sequence[NodeShape], zones: Sequence[str], taints: Sequence[Taint]) -> str:
    if not shapes:
        return NOTHING_TO_LAUNCH
    if not tolerated(taints, shape.tolerations):
        return "the pod does not tolerate the taints of the pool's nodes"
    if zones and shape.zones and not set(zones) & set(shape.zones):
        return f"its volume is in {', '.join(shape.zones)} and the pool launches in {', '.join(zones)}"
    try:
        for node in shapes:
            density(node, shape.requests)
    except CannotPlace as refusal:
        return refusal.reason
    return ""


def _launch(node: NodeShape, pods: Mapping[PodShape, int], gap: Gap, zones: Sequence[str]) -> tuple[int, int]:
    """Units and nodes for `pods` on nodes of one type alone, those bound to some of the group's zones first."""
    bins: list[Bin] = []
    mixed = gap.nodes > 0
    bound = {shape for shape in pods if shape.zones and not set(zones) <= set(shape.zones)}
    for shape in sorted(pods, key=lambda one: one not in bound):
        going = shape if shape in bound else replace(shape, zones=())
        bins, left = fill(bins, going, pods[shape])
        while left:
            opened, left = fill(_open(node, going, left, gap, zones), going, left)
            bins += opened
    nodes = sum(bin_.nodes for bin_ in bins)
    sizes = {shape.requests for shape in pods}
    if len(sizes) == 1 and not bound and not mixed:
        return units_for(sum(pods.values()), [node], sizes.pop()), nodes
    return nodes * node.weight, nodes


def _open(node: NodeShape, shape: PodShape, pods: int, gap: Gap, zones: Sequence[str]) -> list[Bin]:
    """New nodes for `pods`, or for some of them: first those that keep the gap, while it is owed.

    For pods bound to zones they come in rounds of one a zone: Auto Scaling keeps zones level, and may begin anywhere.
    """
    opened_in = tuple(zones) if shape.zones else ("",)
    suitable = [zone for zone in opened_in if not shape.zones or zone in shape.zones]
    kept = node.free - gap.room
    keeping = gap.nodes > 0 and places(kept, shape.requests) > 0
    free = kept if keeping else node.free
    rounds = -(-pods // (places(free, shape.requests) * len(suitable)))
    if keeping:
        rounds = min(rounds, gap.nodes)
        gap.nodes = max(0, gap.nodes - rounds * len(opened_in))
    return [Bin(free, rounds, zone) for zone in opened_in]
