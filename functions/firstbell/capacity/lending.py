"""Fallback: the shortfall of a pool that cannot launch is asked of its fallback pools, in the operator's order. Pure.

Each pool's state says what it has passed on (`overflow`) and how it stands with what was passed to it (`accepted`,
`covered`). No pool writes another's state, so each can be brought to size on its own, in any order.
"""

from __future__ import annotations

from collections import Counter
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
    """The state with `shortfalls` passed on: pods by the reference of each reservation that is still live, 0 for one
    that the pool itself takes. `fallback` is in the operator's order.

    What a fallback pool has accepted stays with it, also once this one launches again: a class is not bought twice.
    Beyond that, all goes to the first that does not back off, and what that one was asked and did not accept to the
    next as well. The first keeps being asked for all, until the next accepts.
    """
    overflow: dict[str, dict[str, int]] = {}
    remaining = Counter(shortfalls)
    for name, neighbour in fallback:
        before = {r: pods for r, pods in state.overflow.get(name, {}).items() if r in shortfalls}
        asked = accepted = _least(before, neighbour.accepted)
        if not neighbour.backs_off(now):
            asked = accepted + remaining
            remaining &= Counter({r: pods - accepted[r] for r, pods in before.items() if r in neighbour.accepted})
        if asked:
            overflow[name] = dict(asked)
    return replace(state, overflow=overflow)


def borrowed(
    pool: Pool, reservations: Iterable[Reservation], states: Mapping[str, PoolState], now: float
) -> list[Reservation]:
    """Reservations of other pools that this one stands in for, each with the pods that were passed on."""
    known = {r.reference: r for r in reservations}
    return [
        replace(known[reference], pods=min(pods, known[reference].pods))
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
        accepted={c.reference: c.arrived + c.outstanding - c.short for c in coverage},
    )


def accepted_elsewhere(state: PoolState, states: Mapping[str, PoolState]) -> Counter[str]:
    """Reference -> pods that fallback pools see to: arrived there, or with room there, or soon."""
    return sum((_least(lent, states[n].accepted) for n, lent in state.overflow.items() if n in states), Counter())


def covered_elsewhere(state: PoolState, states: Mapping[str, PoolState]) -> Counter[str]:
    """Reference -> pods that fallback pools have Ready room for, arrived ones included."""
    return sum((_least(lent, states[n].covered) for n, lent in state.overflow.items() if n in states), Counter())


def unanswered(state: PoolState, states: Mapping[str, PoolState]) -> Counter[str]:
    """Reference -> pods that were passed on to pools which have not looked at them yet."""
    total = Counter[str]()
    for name, lent in state.overflow.items():
        answered = states[name].accepted if name in states else {}
        total += Counter({r: pods for r, pods in lent.items() if r not in answered})
    return total


def without(reservations: Iterable[Reservation], elsewhere: Mapping[str, int]) -> list[Reservation]:
    """The reservations less the pods that others see to."""
    return [replace(r, pods=max(0, r.pods - elsewhere.get(r.reference, 0))) for r in reservations]


def _least(some: Mapping[str, int], others: Mapping[str, int]) -> Counter[str]:
    return Counter(some) & Counter(others)
