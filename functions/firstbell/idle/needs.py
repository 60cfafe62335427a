"""Which idle nodes pods to come have need of, and whether anybody needs the cluster at all. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.capacity.demand import pool_demand
from firstbell.capacity.lending import borrowed
from firstbell.capacity.pool_state import PoolState
from firstbell.capacity.spare import fewest_needed, waiting_demand
from firstbell.idle.verdicts import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from firstbell.capacity.groups import Group
    from firstbell.capacity.placement import Demand
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.reservations import Reservation
    from firstbell.capacity.sight import PoolSight
    from firstbell.idle.verdicts import Verdict

SOON_SECONDS = 30 * 60
"""A reservation that asks for nodes within this time keeps those that are there: a node that goes takes minutes to
leave, and one that comes in its place takes minutes to boot and costs the same."""


def soon_needed(
    pool: Pool, reservations: Iterable[Reservation], states: Mapping[str, PoolState], now: float
) -> tuple[Reservation, ...]:
    """Reservations that ask this pool for nodes now or soon, those included that it stands in for."""
    reservations = tuple(reservations)
    opens_by = now + SOON_SECONDS + _lead_seconds(pool, states)
    own = (r for r in reservations if r.pool == pool.name and r.open_at(now) and r.starts_at <= opens_by)
    return (*own, *borrowed(pool, reservations, states, now))


def demand_on(
    pool: Pool, needed: Sequence[Reservation], seen: PoolSight, states: Mapping[str, PoolState]
) -> tuple[Demand, ...]:
    """Pods that the pool has to have room for: those of `needed` that are yet to come, and those that wait."""
    if not needed:
        return waiting_demand(seen.pending)
    lead_seconds = SOON_SECONDS + _lead_seconds(pool, states)
    return pool_demand(pool, needed, bound=seen.bound, pending=seen.pending, lead_seconds=lead_seconds).items


def needed_instances(
    verdicts: Iterable[Verdict], demand: Sequence[Demand], pool: Pool, group: Group, seen: PoolSight
) -> frozenset[str]:
    """The instances of as many idle nodes as `demand` needs beside the nodes that stay anyway; those that are not
    cordoned yet first. `seen` is the pool without our marks."""
    idle = [v for v in verdicts if v.finding is Finding.IDLE]
    idle.sort(key=lambda v: (v.candidate.marked_at is not None, v.instance_id))
    names = {v.node_name for v in idle}
    room = {free.name: free for free in seen.sight.usable}
    staying = [free for free in seen.sight.usable if free.name not in names]
    spare = [v for v in idle if v.node_name in room]
    count = fewest_needed(demand, staying, [room[v.node_name] for v in spare], zones=group.zones, taints=pool.taints)
    return frozenset(v.instance_id for v in spare[:count])


def _lead_seconds(pool: Pool, states: Mapping[str, PoolState]) -> float:
    return states.get(pool.name, PoolState()).lead_seconds(pool.lead_minutes)
