"""Members on their way to being nodes: which of them are waited for, and which have had their time. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.capacity.pool_state import JOIN_LIMIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firstbell.capacity.groups import Group, Member
    from firstbell.capacity.placement import FreeNode
    from firstbell.capacity.pool_state import PoolState
    from firstbell.capacity.reservations import Reservation


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen of a pool's nodes. `known` is False where the Kubernetes API could not be read."""

    usable: tuple[FreeNode, ...] = ()
    """Ready, schedulable nodes whose taints the pool's pods tolerate, with what is free on each."""
    joined: frozenset[str] = frozenset()
    """Instance ids of members that are not waited for: usable now, or not to be counted on any more."""
    stuck: frozenset[str] = frozenset()
    """Of those, members whose node registered long ago and is not usable, though nothing says that it is going."""
    known: bool = True


def never_joined(group: Group, state: PoolState, sight: Sight, now: float) -> list[Member]:
    """Members that have had 10 minutes and never had a usable node, registered or not. Nobody is blamed while the nodes
    can't be seen."""
    if not sight.known:
        return []
    arrived = (sight.joined - sight.stuck) | set(state.served)
    return [
        m
        for m in group.members
        if m.counted and m.instance_id not in arrived and _age(m, state, now) > JOIN_LIMIT_SECONDS
    ]


def in_flight(group: Group, state: PoolState, sight: Sight, live: Sequence[Reservation], now: float) -> list[Member]:
    """Members without a usable node yet, which will bring room.

    While the nodes can't be seen, members that appeared after the oldest live reservation was asked for count as empty:
    they were launched for it. Older ones are taken to be full.
    """
    if sight.known:
        left_out = sight.joined | {m.instance_id for m in never_joined(group, state, sight, now)}
        return [m for m in group.members if m.counted and m.instance_id not in left_out]
    since = min((r.progress.asked_at for r in live if r.progress.asked_at), default=math.inf)
    return [m for m in group.members if m.counted and state.first_seen.get(m.instance_id, 0.0) > since]


def _age(member: Member, state: PoolState, now: float) -> float:
    return now - state.first_seen.get(member.instance_id, now)
