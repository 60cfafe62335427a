"""How large a pool must be: what every live reservation needs, in the group's own units. Pure.

Sizing is level-triggered. It never adds to what is there; it computes what is needed from what is seen, so that a
duplicate, a retry or a crash leads to the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from firstbell.capacity.demand import UNRESERVED
from firstbell.capacity.density import CannotPlace, density
from firstbell.capacity.joining import in_flight, never_joined
from firstbell.capacity.placement import FreeNode, place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from firstbell.capacity.demand import PoolDemand
    from firstbell.capacity.density import NodeShape
    from firstbell.capacity.groups import Group, Member
    from firstbell.capacity.joining import Sight
    from firstbell.capacity.placement import Demand, Placement
    from firstbell.capacity.pool_state import PoolState
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.reservations import Reservation


@dataclass(frozen=True, slots=True)
class Coverage:
    """How one reservation stands in this pool, in pods."""

    reference: str
    outstanding: int
    """Pods that have not arrived, here or in a fallback pool, nor have room there."""
    arrived: int
    placed: int
    """Outstanding pods that usable nodes have room for now."""
    short: int
    """Outstanding pods that no node will take, there, coming or bought now."""

    @property
    def ready(self) -> bool:
        return self.placed >= self.outstanding


@dataclass(frozen=True, slots=True)
class SizePlan:
    """What to do to the group, and why. Capacities are in the group's units."""

    read: int
    needed: int
    desired: int
    """What desired must be: `read` where nothing is to be written, never lower."""
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    impossible: Mapping[str, str] = field(default_factory=dict)
    """Reference -> why its pod does not fit on every node that the group may launch."""
    never_joined: tuple[str, ...] = ()
    unreserved_short: int = 0
    """Pending pods without a reservation that no node will take."""

    @property
    def raises(self) -> bool:
        return self.desired > self.read

    @property
    def capped(self) -> bool:
        return self.needed > self.desired


def plan_size(
    pool: Pool,
    group: Group,
    state: PoolState,
    sight: Sight,
    demand: PoolDemand,
    live: Sequence[Reservation],
    shapes: Sequence[NodeShape],
    *,
    failing: bool,
    now: float,
    at_least: int = 0,
    obstacle: str = "",
) -> SizePlan:
    """Brings the pool to what `demand` needs.

    base = units of every non-terminating member + units asked for and not launched; needed = base + the new nodes that
    neither usable nodes nor those in flight cover; desired = max(read now, needed), at most MaxSize. While the pool is
    `failing` (it backs off, or may not launch) nothing is asked for and unlaunched units cover nothing. `at_least` is a
    desired capacity of somebody else's that we overwrote and owe back. `obstacle` says why the nodes of the group can't
    be reckoned with, where they can't.
    """
    impossible = {r.reference: why for r in live if (why := obstacle or why_impossible(r, shapes))}
    items = tuple(_within(item, group.zones) for item in demand.items if item.key not in impossible)
    coming = [_empty_node(m, shapes) for m in in_flight(group, state, sight, live, now) if shapes]
    there = (*sight.usable, *coming)
    unlaunched = 0 if failing else group.unlaunched_units
    missing = _missing(items, there, unlaunched, shapes, group, pool)
    base = group.living_units + group.unlaunched_units
    needed = max(base + missing.units if missing.units else group.desired, at_least)
    desired = group.desired if failing else max(group.desired, min(needed, group.max_size))
    launching = unlaunched + max(0, desired - base)
    covered = missing.covered
    if launching < unlaunched + missing.units:
        covered = _placed(
            items, (*there, *_new_nodes(launching, missing.shape, group.zones)), missing.shape, group, pool
        )
    placed_now = _placed(items, sight.usable, missing.shape, group, pool)
    short = {key: demand.pods(key) - covered.get(key, 0) for key in {item.key for item in items}}
    return SizePlan(
        read=group.desired,
        needed=needed,
        desired=desired,
        coverage={
            r.reference: Coverage(
                reference=r.reference,
                outstanding=demand.pods(r.reference),
                arrived=demand.arrived.get(r.reference, 0),
                placed=placed_now.get(r.reference, 0),
                short=short.get(r.reference, 0),
            )
            for r in live
            if r.reference not in impossible
        },
        impossible=impossible,
        never_joined=tuple(sorted(m.instance_id for m in never_joined(group, state, sight, now))),
        unreserved_short=short.get(UNRESERVED, 0),
    )


def why_impossible(reservation: Reservation, shapes: Sequence[NodeShape]) -> str:
    """Why the reservation's pod does not fit on some node that the group may launch; empty where it fits on each."""
    try:
        for shape in shapes:
            density(shape, reservation.pod)
    except CannotPlace as error:
        return error.reason
    return ""


def _within(item: Demand, zones: Sequence[str]) -> Demand:
    """The demand without zones where its pods may go to each of the group's: any new node then suits."""
    if item.shape.zones and set(zones) <= set(item.shape.zones):
        return replace(item, shape=replace(item.shape, zones=()))
    return item


@dataclass(frozen=True, slots=True)
class _Missing:
    """What neither the nodes that there are nor those on their way take."""

    shape: NodeShape | None
    """The type that would need most units; None where the group can launch none."""
    units: int
    covered: Mapping[str, int]
    """Pods by key that have room once these units, too, are launched."""


def _missing(
    items: Sequence[Demand],
    nodes: Sequence[FreeNode],
    unlaunched: int,
    shapes: Sequence[NodeShape],
    group: Group,
    pool: Pool,
) -> _Missing:
    """Which of its types a group launches is its own choice, so each is taken in turn for all that is yet to come. They
    are asked again with what they answered until none asks for more, because that is what the next look will do.
    """
    if not shapes:
        return _Missing(None, 0, _placed(items, nodes, None, group, pool))
    worst, units = None, 0
    while True:
        placements = [
            _place(items, (*nodes, *_new_nodes(unlaunched + units, shape, group.zones)), shape, group, pool)
            for shape in shapes
        ]
        asked = [placement.virtual_units for placement in placements]
        worst = asked.index(max(asked)) if worst is None else worst
        if not any(asked):
            return _Missing(shapes[worst], units, placements[worst].on_existing)
        units += max(asked)


def _placed(
    items: Sequence[Demand], nodes: Sequence[FreeNode], shape: NodeShape | None, group: Group, pool: Pool
) -> Mapping[str, int]:
    """Pods by key that find room on `nodes`; reckoned with the same `shape` as what is bought, so that both agree."""
    return _place(items, nodes, shape, group, pool).on_existing


def _place(
    items: Sequence[Demand], nodes: Sequence[FreeNode], shape: NodeShape | None, group: Group, pool: Pool
) -> Placement:
    return place(items, nodes, (shape,) if shape else (), zones=group.zones, taints=pool.taints)


def _empty_node(member: Member, shapes: Sequence[NodeShape]) -> FreeNode:
    shape = next((s for s in shapes if s.instance_type == member.instance_type), shapes[0])
    return FreeNode(name=member.instance_id, free=shape.free, zone=member.zone)


def _new_nodes(units: int, shape: NodeShape | None, zones: Sequence[str]) -> tuple[FreeNode, ...]:
    """What `units` launch as: Auto Scaling goes on until desired is met, so the last instance may exceed it.

    It keeps zones level, and may begin anywhere: the zone of an instance that makes no full round is not known.
    """
    if shape is None:
        return ()
    nodes = -(-units // shape.weight)
    rounds, unknown = divmod(nodes, len(zones)) if zones else (0, nodes)
    return tuple(
        FreeNode(name="new", free=shape.free, zone=zone) for zone in (*[""] * unknown, *(tuple(zones) * rounds))
    )
