"""Fallback: the shortfall of a pool that cannot launch is asked of its fallback pools, in the operator's order. Pure.

Each pool's state says what it has passed on (`overflow`) and how it stands with what was passed to it (`covered`,
`refused`). No pool writes another's state, so each can be brought to size on its own, in any order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from firstbell.capacity.pool_state import PoolState
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.reservations import Reservation
    from firstbell.capacity.sizing import Coverage


def lend(
    state: PoolState, shortfalls: Mapping[str, int], fallback: Iterable[tuple[str, PoolState]], now: float
) -> PoolState:
    """The state with `shortfalls` (reference -> pods) passed on; `fallback` is in the operator's order.

    All of it goes to the first pool that does not back off, what that one cannot take also to the next, and so on. The
    first keeps being asked for all: were it asked for less once it refused some, it would refuse nothing, be asked for
    all again, and never rest.
    """
    overflow: dict[str, dict[str, int]] = {}
    remaining = {reference: pods for reference, pods in shortfalls.items() if pods}
    for name, neighbour in fallback:
        if not remaining:
            break
        if neighbour.backs_off(now):
            continue
        overflow[name] = remaining
        asked = state.overflow.get(name, {})
        # What it refused counts only where it has been asked already.
        refused = {r: min(pods, neighbour.refused.get(r, 0)) for r, pods in remaining.items() if r in asked}
        remaining = {r: pods for r, pods in refused.items() if pods}
    return replace(state, overflow=overflow)


def borrowed(
    pool: Pool, reservations: Iterable[Reservation], states: Mapping[str, PoolState], now: float
) -> list[Reservation]:
    """Reservations of other pools that this one stands in for, each with the pods that were passed on."""
    known = {r.reference: r for r in reservations}
    return [
        replace(known[reference], pods=pods)
        for name, state in states.items()
        if name != pool.name
        for reference, pods in state.overflow.get(pool.name, {}).items()
        if reference in known and known[reference].pool == name and known[reference].open_at(now)
    ]


def stand_in(state: PoolState, coverage: Iterable[Coverage]) -> PoolState:
    """The state with how this pool stands with what was passed to it."""
    coverage = tuple(coverage)
    return replace(
        state,
        covered={c.reference: c.arrived + c.placed for c in coverage},
        refused={c.reference: c.short for c in coverage if c.short},
    )


def covered_elsewhere(state: PoolState, states: Mapping[str, PoolState]) -> dict[str, int]:
    """Reference -> pods that fallback pools cover, arrived ones included."""
    total: dict[str, int] = {}
    for name, lent in state.overflow.items():
        for reference, pods in lent.items():
            theirs = states[name].covered.get(reference, 0) if name in states else 0
            total[reference] = total.get(reference, 0) + min(pods, theirs)
    return total


def refused_elsewhere(state: PoolState, states: Mapping[str, PoolState]) -> dict[str, int]:
    """Reference -> pods that were passed on and that even the last fallback pool cannot take."""
    last: dict[str, int] = {}
    for name, lent in state.overflow.items():
        for reference, pods in lent.items():
            last[reference] = min(pods, states[name].refused.get(reference, 0)) if name in states else 0
    return last
