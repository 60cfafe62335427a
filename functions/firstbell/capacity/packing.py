"""Counting pods into nodes, many alike at a time: what `placement` is built of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.capacity.density import places
from firstbell.capacity.resources import RESOURCE_NAMES, Resources
from firstbell.capacity.scheduling import Taint, Toleration, tolerated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SPREADING_FROM = 4
"""Least density of a size that room is kept for, see `Gap`."""


@dataclass(frozen=True, slots=True)
class PodShape:
    """What decides where a pod may go."""

    requests: Resources
    tolerations: tuple[Toleration, ...] = ()
    zones: tuple[str, ...] = ()
    """Zones that its bound zonal volumes allow; empty = any."""


@dataclass(frozen=True, slots=True)
class Bin:
    """`nodes` alike, with `free` left on each."""

    free: Resources
    nodes: int
    zone: str = ""
    taints: tuple[Taint, ...] = ()

    def of(self, nodes: int, free: Resources) -> Bin:
        """Some of the nodes, with something else left on them."""
        return Bin(free, nodes, self.zone, self.taints)

    def admits(self, shape: PodShape) -> bool:
        in_zone = not shape.zones or self.zone in shape.zones
        return in_zone and (not self.taints or tolerated(self.taints, shape.tolerations))


@dataclass(slots=True)
class Gap:
    """The place that a demand of several sizes leaves unpromised, and on how many more nodes it has to be kept.

    `room` is the largest size; `nodes` the number of pods of other sizes than the most frequent, because each of them
    can spoil one node.
    """

    room: Resources
    nodes: int

    def keep(self, bin_: Bin) -> list[Bin]:
        """The bin, less the gap on as many of its nodes as still need one."""
        kept = min(self.nodes, bin_.nodes)
        self.nodes -= kept
        if not kept:
            return [bin_]
        parts = (bin_.of(kept, bin_.free - self.room), bin_.of(bin_.nodes - kept, bin_.free))
        return [part for part in parts if part.nodes]


def gap_for(sizes: Counter[Resources], empty_nodes: Iterable[Resources]) -> Gap:
    """The gap for pods of `sizes`; none for one size. `empty_nodes` tell which sizes are too large to keep room for."""
    rooms = tuple(set(empty_nodes))
    spreading = [size for size in sizes if any(places(room, size) >= SPREADING_FROM for room in rooms)]
    if len(sizes) < 2 or not spreading:
        return Gap(Resources(), 0)
    largest = Resources(*(max(getattr(size, name) for size in spreading) for name in RESOURCE_NAMES))
    return Gap(largest, sizes.total() - max(sizes.values()))


def fill(bins: Sequence[Bin], shape: PodShape, pods: int) -> tuple[list[Bin], int]:
    """Put up to `pods` of `shape` into `bins`, in order: the bins afterwards, and the pods that found no room."""
    filled: list[Bin] = []
    for position, bin_ in enumerate(bins):
        if not pods:
            return filled + list(bins[position:]), 0
        each = places(bin_.free, shape.requests) if bin_.admits(shape) else 0
        if not each:
            filled.append(bin_)
            continue
        full = min(pods // each, bin_.nodes)
        rest = pods - full * each if full < bin_.nodes else 0
        pods -= full * each + rest
        if full:
            filled.append(bin_.of(full, bin_.free - shape.requests.times(each)))
        if rest:
            filled.append(bin_.of(1, bin_.free - shape.requests.times(rest)))
        if untouched := bin_.nodes - full - (1 if rest else 0):
            filled.append(bin_.of(untouched, bin_.free))
    return filled, pods


def largest_first(shapes: Iterable[PodShape], empty_nodes: Sequence[Resources]) -> list[PodShape]:
    """Those bound to zones first, as they have the least choice; then by the number that fits on an empty node."""

    def rank(shape: PodShape) -> tuple[bool, int, tuple[int, ...]]:
        fitting = max((places(room, shape.requests) for room in empty_nodes), default=0)
        asked = tuple(-getattr(shape.requests, name) for name in RESOURCE_NAMES)
        return not shape.zones, fitting, asked

    return sorted(shapes, key=rank)
