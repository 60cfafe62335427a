"""Density: how many user pods fit on one node, and how many units of a group a number of pods needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from firstbell.capacity.resources import RESOURCE_NAMES, Resources
from firstbell.errors import FirstbellError

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORDS = {
    "cpu_millicores": "cpu",
    "memory_bytes": "memory",
    "ephemeral_storage_bytes": "ephemeral-storage",
    "pods": "pods",
    "gpus": "gpu",
    "volumes": "volumes",
}
"""Field of Resources -> the name that operators read."""


class CannotPlace(FirstbellError):
    """The pod fits on no node of the pool, however many there were. `reason` is for the portal and the operator.

    `limited_by` names the resource that is too small, where it is one.
    """

    def __init__(self, reason: str, limited_by: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.limited_by = limited_by


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A node that the pool may launch."""

    instance_type: str
    allocatable: Resources
    overhead: Resources = field(default_factory=Resources)
    """What runs on every such node: DaemonSet and host-network system pods, their requests and their number."""
    estimated: bool = False
    """Whether `allocatable` was computed, not read from a node of this pool and type."""
    weight: int = 1
    """The group's units that one such node counts for."""

    @property
    def free(self) -> Resources:
        """What is left for user pods; never negative."""
        left = self.allocatable - self.overhead
        return Resources(*(max(0, getattr(left, name)) for name in RESOURCE_NAMES))


@dataclass(frozen=True, slots=True)
class Density:
    """How many pods fit on one node, and the resource that ends first."""

    pods: int
    limited_by: str
    estimated: bool


def density(shape: NodeShape, request: Resources) -> Density:
    """Pods of `request` that fit on an empty node of `shape`. Raises CannotPlace where it is none."""
    pods = places(shape.free, request)
    limiting = _first_to_end(shape.free, request)
    if pods == 0:
        raise CannotPlace(_too_large(shape, request, limiting), _WORDS[limiting])
    return Density(pods=pods, limited_by=_WORDS[limiting], estimated=shape.estimated)


def places(free: Resources, request: Resources) -> int:
    """Identical pods of `request` that fit into `free`. A resource that is not asked for never limits.

    Raises ValueError for a request that is no pod (`pods` below 1): any number of nothings fits.
    """
    if request.pods < 1:
        raise ValueError("a request has to count itself: pods=1")
    fitting = free.pods // request.pods
    for offered, asked in (  # written out: a plan for 10,000 pods comes here 10,000 times and more
        (free.cpu_millicores, request.cpu_millicores),
        (free.memory_bytes, request.memory_bytes),
        (free.ephemeral_storage_bytes, request.ephemeral_storage_bytes),
        (free.gpus, request.gpus),
        (free.volumes, request.volumes),
    ):
        if asked and offered // asked < fitting:
            fitting = offered // asked
    return max(0, fitting)


def smallest_per_unit(shapes: Sequence[NodeShape], request: Resources) -> NodeShape:
    """The shape that gives fewest places for a unit of weight: what a mixed pool is reckoned by.

    Auto Scaling chooses the types, so any other choice gives at least as many places. Raises CannotPlace if the pod
    does not fit on one of the shapes: a launch might bring that one only.
    """
    return min(shapes, key=lambda shape: Fraction(density(shape, request).pods, shape.weight))


def units_for(pods: int, shapes: Sequence[NodeShape], request: Resources) -> int:
    """Units of a group that hold `pods` identical pods, whichever of `shapes` Auto Scaling launches for them.

    A launch of u units has places for at least u x (smallest density per unit) pods, since instances are whole.
    Raises CannotPlace.
    """
    worst = smallest_per_unit(shapes, request)
    return -(-pods * worst.weight // density(worst, request).pods)


def _first_to_end(free: Resources, request: Resources) -> str:
    asked_for = (name for name in RESOURCE_NAMES if getattr(request, name))
    return min(asked_for, key=lambda name: getattr(free, name) // getattr(request, name))


def _too_large(shape: NodeShape, request: Resources, limiting: str) -> str:
    asked, offered = getattr(request, limiting), getattr(shape.free, limiting)
    if limiting == "gpus" and not shape.allocatable.gpus:
        return f"the pod asks for {asked} GPU and {shape.instance_type} has none"
    beside = " beside what runs on every node" if getattr(shape.overhead, limiting) else ""
    return (
        f"the pod asks for {_amount(limiting, asked)} and {shape.instance_type} offers "
        f"{_amount(limiting, offered)}{beside}"
    )


def _amount(name: str, amount: int) -> str:
    """For people: `1930m cpu`, `6.7Gi memory`, `29 pods`."""
    if name == "cpu_millicores":
        return f"{amount}m cpu"
    if name in ("memory_bytes", "ephemeral_storage_bytes"):
        return f"{amount / 2**30:.4g}Gi {_WORDS[name]}"
    return f"{amount} {_WORDS[name]}"
