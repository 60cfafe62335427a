"""What a minute's run has to look at. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.capacity.pool_state import PoolState
from firstbell.capacity.reservations import Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from firstbell.capacity.pools import Pool
    from firstbell.capacity.reservations import Reservation

_LEFT_TO_DO = ("holds", "protected", "overflow", "covered", "wanted")
"""Parts of a pool's state that say that something is left to look after, or to take back."""


def pools_to_visit(
    pools: Iterable[Pool], reservations: Iterable[Reservation], states: Mapping[str, PoolState], now: float
) -> list[Pool]:
    """Pools with a live reservation, their own or one that they stand in for, and those with something left to undo."""
    reservations = tuple(reservations)
    asked = {name for state in states.values() for name in state.overflow}
    return [
        pool
        for pool in pools
        if pool.name in asked or _live(pool, reservations, states, now) or _keeps(states.get(pool.name))
    ]


def _live(pool: Pool, reservations: Iterable[Reservation], states: Mapping[str, PoolState], now: float) -> bool:
    ours = [r for r in reservations if r.pool == pool.name]
    if not ours:
        return False
    state = states.get(pool.name)
    lead_seconds = (state or PoolState()).lead_seconds(pool.lead_minutes)
    return any(r.phase(now, lead_seconds) is Phase.LIVE for r in ours)


def _keeps(state: PoolState | None) -> bool:
    """Idle's cordons are looked after too: a student who comes meanwhile must not wait for idle's next evaluation."""
    return state is not None and (bool(state.idle.marked) or any(getattr(state, part) for part in _LEFT_TO_DO))
