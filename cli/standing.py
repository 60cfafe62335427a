"""How reservations and pools stand, and what each waits for. Pure: from looks to rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.answers import counted, moment
from firstbell.capacity.density import places
from firstbell.capacity.reservations import Phase
from firstbell.outcomes import rfc3339
from firstbell.reconcile.holds import HELD_BY_US
from firstbell.reconcile.remedies import REMEDIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firstbell.capacity.pools import Pool
    from firstbell.capacity.reservations import Reservation
    from firstbell.reconcile.look import Look


@dataclass(frozen=True, slots=True)
class ReservationStanding:
    reference: str
    pool: str
    phase: str
    pods: int
    portal: str
    starts_at: str
    ends_at: str
    ready_at: str | None
    arrived_pods: int
    placed_pods: int
    """Pods to come that usable nodes have room for, those of fallback pools included."""
    waits_for: str


@dataclass(frozen=True, slots=True)
class PoolStanding:
    """Capacities in the group's units, the rest in nodes or pods. None = unknown: the cluster cannot be read."""

    pool: str
    group: str | None
    mode: str
    desired: int
    max_size: int
    usable_nodes: int | None
    starting_nodes: int | None
    """Members that have no Ready node yet and are expected to."""
    never_joined: tuple[str, ...]
    unlaunched_units: int
    outstanding_pods: int
    headroom_pods: int | None
    """Pods of the pool's usual size that usable nodes have room for."""
    pending_pods: int | None
    back_off_until: str | None
    back_off_reason: str
    held_nodes: int | None
    lent_pods: Mapping[str, int]
    """Fallback pool -> pods that were passed on to it."""
    waits_for: str


def reservation_standing(reservation: Reservation, look: Look | None, now: float) -> ReservationStanding:
    """`look` is of the reservation's pool; None where the file lists that pool no more."""
    situation = look.situation if look else None
    coverage = situation.plan.coverage.get(reservation.reference) if situation else None
    lead_seconds = situation.lead_seconds if situation else 0.0
    ready_at = reservation.progress.ready_at
    return ReservationStanding(
        reference=reservation.reference,
        pool=reservation.pool,
        phase=str(reservation.phase(now, lead_seconds)),
        pods=reservation.pods,
        portal=reservation.portal,
        starts_at=rfc3339(reservation.starts_at),
        ends_at=rfc3339(reservation.ends_at),
        ready_at=rfc3339(ready_at) if ready_at else None,
        arrived_pods=coverage.arrived if coverage else 0,
        placed_pods=coverage.placed if coverage else 0,
        waits_for=_reservation_waits_for(reservation, look, now),
    )


def pool_standing(pool: Pool, look: Look, now: float) -> PoolStanding:
    group, seen, situation = look.group, look.seen, look.situation
    known = seen is not None and seen.sight.known
    nodes = seen.nodes if seen is not None and known else ()
    own = {r.reference for r in look.own}
    backs_off = look.state.backs_off(now)
    return PoolStanding(
        pool=pool.name,
        group=group.name if group else None,
        mode=situation.mode,
        desired=group.desired if group else 0,
        max_size=group.max_size if group else 0,
        usable_nodes=len(situation.nodes) if known else None,
        starting_nodes=_starting(look),
        never_joined=situation.plan.never_joined,
        unlaunched_units=group.unlaunched_units if group else 0,
        outstanding_pods=sum(c.outstanding for ref, c in situation.plan.coverage.items() if ref in own),
        headroom_pods=sum(places(n.free, pool.pod) for n in seen.sight.usable) if seen and known else None,
        pending_pods=len(seen.pending) if seen and known else None,
        back_off_until=rfc3339(look.state.backoff_until) if backs_off else None,
        back_off_reason=f"{look.state.failure_reason}: {look.state.failure_detail}" if backs_off else "",
        held_nodes=sum(HELD_BY_US in n.annotations for n in nodes) if known else None,
        lent_pods={name: sum(pods.values()) for name, pods in situation.lent.items()},
        waits_for=_pool_waits_for(pool, look, now),
    )


def _starting(look: Look) -> int | None:
    if look.group is None or look.seen is None or not look.seen.sight.known:
        return None
    waited_for = {m.instance_id for m in look.group.members if m.counted} - look.seen.sight.joined
    return len(waited_for - set(look.situation.plan.never_joined))


def _reservation_waits_for(reservation: Reservation, look: Look | None, now: float) -> str:
    if reservation.cancelled_at:
        return f"nothing: cancelled at {moment(reservation.cancelled_at, now)}"
    if now >= reservation.ends_at:
        return f"nothing: over since {moment(reservation.ends_at, now)}"
    if look is None:
        return f"a pool: the operator's file lists no {reservation.pool}"
    if reservation.phase(now, look.situation.lead_seconds) is Phase.FUTURE:
        asks_at = moment(reservation.starts_at - look.situation.lead_seconds, now)
        return f"{asks_at}, when nodes are asked for (lead {look.situation.lead_seconds / 60:.0f} min)"
    return _live_waits_for(reservation, look)


def _live_waits_for(reservation: Reservation, look: Look) -> str:
    situation = look.situation
    if why := situation.plan.impossible.get(reservation.reference):
        return f"nothing: it will be rejected, {why}"
    coverage = situation.plan.coverage[reservation.reference]
    awaited = situation.awaited_elsewhere.get(reservation.reference, 0)
    if not coverage.outstanding and not awaited:
        return f"nothing: all {counted(coverage.arrived, 'pod')} have arrived"
    missing = coverage.outstanding - coverage.placed + awaited
    if not situation.headroom_known:
        return "sight of the cluster: its API cannot be read, so nobody knows what room there is"
    if missing <= 0:
        return f"its pods: {coverage.arrived} have arrived, and there is room for the other {coverage.outstanding}"
    return f"room for {counted(missing, 'pod')}: {_what_is_coming(look, coverage.short)}"


def _what_is_coming(look: Look, short: int) -> str:
    situation, group = look.situation, look.group
    coming = []
    if starting := _starting(look):
        coming.append(f"{counted(starting, 'node')} starting")
    if group and group.unlaunched_units and not look.state.backs_off(situation.now):
        coming.append(f"{counted(group.unlaunched_units, 'unit')} not launched yet")
    coming += [f"{counted(sum(pods.values()), 'pod')} passed on to {name}" for name, pods in situation.lent.items()]
    if situation.plan.raises:
        coming.append(
            "Firstbell is paused"
            if situation.mode == "paused"
            else "the pool is in mode observe"
            if situation.mode == "observe"
            else f"desired is about to go from {situation.plan.read} to {situation.plan.desired}"
        )
    if short and situation.obstacle:
        reason, detail = situation.obstacle
        coming.append(f"{counted(short, 'pod')} short, {detail}. {REMEDIES[reason]}")
    return "; ".join(coming) or "the next tick sees to it"


def _pool_waits_for(pool: Pool, look: Look, now: float) -> str:
    group, state = look.group, look.state
    if group is None:
        return f"its group: there is no {pool.group or pool.nodegroup} in this region"
    waits = []
    if look.situation.mode == "paused":
        waits.append("`firstbell resume`: Firstbell is paused")
    if state.backs_off(now):
        until = moment(state.backoff_until, now)
        waits.append(f"{until}, until when it backs off: {state.failure_reason}, {state.failure_detail}")
    elif group.unlaunched_units:
        waits.append(f"{counted(group.unlaunched_units, 'unit')} to launch")
    if starting := _starting(look):
        waits.append(f"{counted(starting, 'node')} to be Ready")
    if look.situation.plan.never_joined:
        waits.append(f"{', '.join(look.situation.plan.never_joined)}, which never joined")
    if state.contested(now):
        waits.append("whoever lowers its desired capacity to stop")
    return "; ".join(waits) or "nothing"
