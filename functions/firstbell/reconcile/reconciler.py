"""Brings pools to what their live reservations need: lease, look, say, remember. Level-triggered.

Whoever changes demand stores it first and then marks the pool dirty; the holder of the pool's lease loops until the
pool is clean. A run that dies between any two lines leaves the stored demand, and the next run does what is left to do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firstbell.capacity.stages import caused_at
from firstbell.cloud.bus import OutcomeEvent
from firstbell.errors import Conflict, RetryLater
from firstbell.outcomes import CapacityReady, CapacityShort
from firstbell.reconcile.announcements import Told, tell
from firstbell.reconcile.figures import emit_figures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from firstbell.capacity.pool_state import PoolState
    from firstbell.capacity.pools import Pool
    from firstbell.cloud.bus import Bus
    from firstbell.cloud.ledger import Ledger, LedgerView
    from firstbell.outcomes import Outcome
    from firstbell.reconcile.arrivals import StageClock
    from firstbell.reconcile.look import Look, Looker
    from firstbell.reconcile.reading import ClusterReading
    from firstbell.telemetry import Telemetry

MOST_PASSES = 10
MOST_VISITS = 3
"""How often one run comes back to a pool whose neighbours changed; tick sees to the rest."""


@dataclass(slots=True)
class Reconciler:
    ledger: Ledger
    looker: Looker
    bus: Bus
    telemetry: Telemetry
    clock: Callable[[], float]
    holder: str
    """Unique to this run: it holds the leases."""
    stages: StageClock | None = None
    """Where arrivals are timed; None where that is not this run's business."""
    _said: set[str] = field(default_factory=set)
    """Outcome ids published by this run, so that another pass does not say them again."""

    def bring_to_size(
        self,
        pools: Iterable[Pool],
        read: Callable[[], ClusterReading],
        *,
        changed: bool,
        view: LedgerView | None = None,
    ) -> None:
        """Brings each pool to size unless somebody else is at it, and then those that it lent to or stands in for.

        `changed`: we stored a change of demand. `read` gives the reading of the cluster for a pass. `view` saves the
        first reading of the ledger where the caller read it and stored only its own change since.
        """
        settings = self.looker.settings
        waiting = list(pools)
        visits: dict[str, int] = {}
        while waiting:
            pool = waiting.pop(0)
            visits[pool.name] = visits.get(pool.name, 0) + 1
            neighbours = self._bring_one(pool, read, changed=changed or visits[pool.name] > 1, view=view)
            view = None
            for name in sorted(neighbours):
                neighbour = settings.pool(name)
                if neighbour and neighbour not in waiting and visits.get(name, 0) < MOST_VISITS:
                    waiting.append(neighbour)

    def _bring_one(
        self, pool: Pool, read: Callable[[], ClusterReading], *, changed: bool, view: LedgerView | None
    ) -> set[str]:
        """Returns the pools whose demand or cover changed with this one."""
        lease = self.ledger.lease(pool.name, self.holder, self.clock(), changed=changed)
        if lease is not None and view is not None and lease.dirty != view.dirty.get(pool.name, 0) + changed:
            view = None  # somebody else changed the demand, too
        neighbours: set[str] = set()
        for _ in range(MOST_PASSES):
            if lease is None:
                return neighbours
            held = lease
            try:
                before = view or self.ledger.read()
                look = self.looker.look(pool, before, read(), self.clock())
                told = [tell(r, look.situation) for r in look.own]
                self._publish(o for t in told for o in t.outcomes)
                state = self._measure(look, told)
                emit_figures(pool, look, self.telemetry)
                after = [self.stages.read(t.reservation, look) if self.stages else t.reservation for t in told]
                changes = [new for new, old in zip(after, look.own, strict=True) if new != old]
                done = self.ledger.finish(held, state, changes)
            except Conflict:
                done = False  # the group's limits changed under us
            except Exception:
                self.ledger.abandon(held)
                raise
            view = None
            if not done:
                lease = self.ledger.renew(held, self.clock())
                continue
            neighbours |= _affected(pool, before, state)
            if not look.again:
                return neighbours
            lease = self.ledger.lease(pool.name, self.holder, self.clock(), changed=False)
        if lease is not None:
            self.ledger.abandon(lease)
        raise RetryLater(f"pool {pool.name} kept changing through {MOST_PASSES} passes")

    def _publish(self, outcomes: Iterable[Outcome]) -> None:
        new = [o for o in outcomes if o.outcome_id not in self._said]
        if new:
            self.bus.publish([OutcomeEvent(o.DETAIL_TYPE, o.as_detail()) for o in new])
            self._said.update(o.outcome_id for o in new)
            self.telemetry.log_outcomes(new)

    def _measure(self, look: Look, told: list[Told]) -> PoolState:
        """Reports the figures of a look. Returns its state with what was measured for the "auto" lead."""
        situation, state, emit = look.situation, look.state, self.telemetry.emit
        pool = situation.pool
        for t in told:
            for outcome in t.outcomes:
                if isinstance(outcome, CapacityShort):
                    emit("ShortByReason", pool=pool, reason=outcome.reason)
                if isinstance(outcome, CapacityReady):
                    for stage, seconds in outcome.stages.items():
                        emit("StageSeconds", seconds, pool=pool, stage=stage)
            if t.became_late:
                emit("ReservationsLate", pool=pool)
            raised_at, ready_at = t.reservation.progress.raised_at, t.reservation.progress.ready_at
            if t.became_ready and raised_at:
                state = state.measured(ready_at - raised_at)
                emit("SecondsToReady", ready_at - caused_at(t.reservation, situation.lead_seconds), pool=pool)
        emit("PodsShort", sum(t.pods_short for t in told), pool=pool)
        return state


def _affected(pool: Pool, before: LedgerView, state: PoolState) -> set[str]:
    """Fallback pools whose share changed, and pools for which this one stands in differently than before."""
    earlier = before.state(pool.name)
    lent = {n for n in {*earlier.overflow, *state.overflow} if earlier.overflow.get(n) != state.overflow.get(n)}
    if (earlier.covered, earlier.accepted) != (state.covered, state.accepted):
        lent |= {name for name, other in before.pools.items() if pool.name in other.overflow}
    return lent - {pool.name}
