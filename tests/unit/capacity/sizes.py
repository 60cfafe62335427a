"""Pools, groups and demands of a few sizes, for tests of what is computed from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from firstbell.capacity.demand import PoolDemand
from firstbell.capacity.density import NodeShape
from firstbell.capacity.groups import Group, Member
from firstbell.capacity.joining import Sight
from firstbell.capacity.placement import Demand, FreeNode, PodShape
from firstbell.capacity.pool_state import PoolState
from firstbell.capacity.pools import Pool
from firstbell.capacity.reservations import Reservation
from firstbell.capacity.resources import Resources
from firstbell.capacity.sizing import SizePlan, plan_size

NOW = 1_796_112_000.0
GIB = 2**30
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
POOL = Pool(name="notebook", pod=Resources(cpu_millicores=500, memory_bytes=2 * GIB, pods=1), group="asg-notebook")

LARGE = NodeShape("m5.large", Resources(1930, 7 * GIB, pods=29), Resources(100, GIB // 4, pods=4))
XLARGE = NodeShape("m5.xlarge", Resources(3920, 14 * GIB, pods=58), Resources(100, GIB // 4, pods=4), weight=2)
DOUBLE = NodeShape("m5.2xlarge", Resources(7910, 29 * GIB, pods=58), Resources(100, GIB // 4, pods=4), weight=4)


def pod(millicores: int = 500, gib: float = 2) -> Resources:
    return Resources(cpu_millicores=millicores, memory_bytes=int(gib * GIB), pods=1)


def reservation(reference: str = "bio101", pods: int = 30, **changes: Any) -> Reservation:
    made = Reservation(
        reference=reference,
        pool="notebook",
        pods=pods,
        pod=pod(),
        starts_at=NOW,
        ends_at=NOW + 3600,
        signalled_at=NOW,
        received_at=NOW,
        portal="teachers",
    )
    return replace(made, **changes)


def group(*shapes: NodeShape, desired: int = 0, max_size: int = 10_000, **changes: Any) -> Group:
    """A group that launches `shapes`, none of them launched yet."""
    made = Group(
        name="asg-notebook",
        desired=desired,
        min_size=0,
        max_size=max_size,
        weights={shape.instance_type: shape.weight for shape in shapes if shape.weight > 1},
        instance_types=tuple(shape.instance_type for shape in shapes),
        zones=ZONES[:1],
    )
    return replace(made, **changes)


def member(number: int, shape: NodeShape, zone: str = ZONES[0], lifecycle: str = "InService") -> Member:
    return Member(f"i-{number:017x}", lifecycle, shape.instance_type, zone, weight=shape.weight)


def size(
    group: Group,
    items: list[Demand],
    shapes: list[NodeShape],
    *,
    usable: tuple[FreeNode, ...] = (),
    joined: frozenset[str] = frozenset(),
    known: bool = True,
    state: PoolState | None = None,
    failing: bool = False,
    now: float = NOW,
    at_least: int = 0,
    live: list[Reservation] | None = None,
) -> SizePlan:
    """`plan_size` for demand under its own references, all of it live."""
    asking = live or [reservation(item.key, pod=item.shape.requests) for item in items]
    return plan_size(
        POOL,
        group,
        state or PoolState(),
        Sight(usable=usable, joined=joined, known=known),
        PoolDemand(items=tuple(items)),
        asking,
        shapes,
        failing=failing,
        now=now,
        at_least=at_least,
    )


requests = st.builds(pod, millicores=st.sampled_from((50, 250, 500, 1000)), gib=st.sampled_from((0.25, 0.5, 1, 2, 5)))
zone_sets = st.sampled_from(((), (), (), ZONES[:1], ZONES[1:2], ZONES[:2]))
pod_shapes = st.builds(PodShape, requests=requests, zones=zone_sets)


@st.composite
def demands(draw: st.DrawFn) -> list[Demand]:
    """Up to four reservations, each of pods of one shape."""
    shapes = draw(st.lists(pod_shapes, min_size=1, max_size=4))
    return [Demand(f"class-{n}", shape, draw(st.integers(1, 60))) for n, shape in enumerate(shapes)]


launchable = st.lists(st.sampled_from((LARGE, XLARGE, DOUBLE)), min_size=1, max_size=3, unique=True)


@st.composite
def usable_nodes(draw: st.DrawFn) -> tuple[FreeNode, ...]:
    """Nodes with something left of them, in any zone."""
    free = st.builds(
        Resources,
        cpu_millicores=st.integers(0, 3920),
        memory_bytes=st.integers(0, 14 * GIB),
        pods=st.integers(0, 50),
    )
    return tuple(
        FreeNode(f"node-{n}", room, draw(st.sampled_from(ZONES)))
        for n, room in enumerate(draw(st.lists(free, max_size=6)))
    )
