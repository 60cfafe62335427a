"""One look at a pool: what is read of it, what follows, what is done to its group, and how it stands then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.capacity.demand import pool_demand
from firstbell.capacity.failures import FALLS_BACK, Reason, being_refreshed, lowered_by_us
from firstbell.capacity.lending import (
    accepted_elsewhere,
    borrowed,
    covered_elsewhere,
    lend,
    stand_in,
    unanswered,
    without,
)
from firstbell.capacity.reservations import Phase
from firstbell.capacity.sizing import Coverage, SizePlan, plan_size
from firstbell.capacity.spare import waiting_demand
from firstbell.capacity.stages import running_at
from firstbell.errors import NotFound
from firstbell.reconcile.acting import Acted, act
from firstbell.reconcile.announcements import Situation
from firstbell.reconcile.holds import Held, hold
from firstbell.reconcile.launches import read_activities, with_launches
from firstbell.reconcile.reopening import reopen
from firstbell.reconcile.shapes import Launchable, launchable, remember, remembered_overhead

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstbell.capacity.groups import Group
    from firstbell.capacity.pool_state import PoolState
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.reservations import Reservation
    from firstbell.capacity.sight import PoolSight
    from firstbell.cloud.autoscaling import AutoScaling
    from firstbell.cloud.instance_types import InstanceTypes
    from firstbell.cloud.ledger import LedgerView
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.reconcile.reading import ClusterReading
    from firstbell.settings import Cluster
    from firstbell.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Look:
    """What a look found and left behind."""

    state: PoolState
    own: tuple[Reservation, ...]
    """Live reservations of this pool."""
    situation: Situation
    group: Group | None = None
    seen: PoolSight | None = None
    again: bool = False
    """Whether another look is due at once."""


@dataclass(frozen=True, slots=True)
class Looker:
    """Looks at pools and acts on their groups. A `thorough` look spends calls that a signal has no time for, and holds
    nodes against scale-down."""

    settings: Cluster
    autoscaling: AutoScaling
    instance_types: InstanceTypes
    telemetry: Telemetry
    group_name: Callable[[Pool], str]
    connect: Callable[[], KubernetesCluster]
    thorough: bool
    writes: bool = True
    """False: everything is planned and nothing written, whatever the pools' modes say."""

    def look(self, pool: Pool, view: LedgerView, reading: ClusterReading, now: float) -> Look:
        state = view.state(pool.name)
        group = self._group(pool)
        if group is None:
            return self._without_group(pool, view, now)
        seen = reading.of_pool(pool, group, expected_overhead=remembered_overhead(state), now=now)
        state = state.observed(
            (m.instance_id for m in group.members if m.counted),
            group.unlaunched_units,
            now,
            usable_ids=(node.instance_id for node in seen.usable_nodes),
        )
        own = live_reservations(pool, view, now)
        activities = read_activities(self.autoscaling, group, state, own, now) if self.thorough else []
        state = with_launches(remember(state, seen), pool.name, group, seen.sight, activities, self.telemetry, now)
        elsewhere = accepted_elsewhere(state, view.pools)
        live = (*without(own, elsewhere), *borrowed(pool, view.reservations, view.pools, now))
        offer = launchable(pool, group, state, self.instance_types, reading.daemonsets) if live else Launchable()
        lead_seconds = state.lead_seconds(pool.lead_minutes)
        demand = pool_demand(pool, live, bound=seen.bound, pending=seen.pending, lead_seconds=lead_seconds)
        acts = self.writes and pool.mode == "act" and not view.paused
        if acts:
            wanted = demand.items if live else waiting_demand(seen.pending)
            seen, state = reopen(self.connect, reading, pool, group, seen, state, wanted, self.telemetry, now)
        plan = plan_size(
            pool,
            group,
            state,
            seen.sight,
            demand,
            live,
            offer.shapes,
            failing=state.backs_off(now),
            now=now,
            at_least=lowered_by_us(activities, state.wrote),
            obstacle=offer.obstacle,
        )
        refreshed = being_refreshed(activities, now)
        acted = Acted(state)
        if acts:
            acted = act(
                self.autoscaling, pool.name, group, state, seen, plan, self.telemetry, now, being_refreshed=refreshed
            )
        state = self._with_neighbours(pool, view, acted.state, plan, own, now)
        held = hold(self.connect, seen, state, wanted=bool(own)) if self.thorough and acts else Held(state)
        state = held.state
        situation = Situation(
            cluster=self.settings.name,
            pool=pool.name,
            mode="paused" if view.paused else pool.mode,
            plan=plan,
            shapes=offer.shapes,
            lead_seconds=lead_seconds,
            now=now,
            nodes=seen.usable_nodes,
            running=running_at(activities),
            headroom_known=seen.sight.known,
            obstacle=_obstacle(view, state, group, plan, acted.busy, now, being_refreshed=refreshed),
            unbought=(plan.raises and (view.paused or bool(acted.busy))) or state.contested(now),
            lent=state.overflow,
            awaited_elsewhere=elsewhere - covered_elsewhere(state, view.pools),
            unanswered=unanswered(state, view.pools),
        )
        return Look(state, own, situation, group, seen, again=acted.again or held.again)

    def _group(self, pool: Pool) -> Group | None:
        try:
            name = self.group_name(pool)
        except NotFound:
            return None
        return self.autoscaling.describe([name]).get(name)

    def _without_group(self, pool: Pool, view: LedgerView, now: float) -> Look:
        state = view.state(pool.name)
        own = live_reservations(pool, view, now)
        coverage = {
            r.reference: Coverage(r.reference, outstanding=r.pods, arrived=0, placed=0, short=r.pods) for r in own
        }
        situation = Situation(
            cluster=self.settings.name,
            pool=pool.name,
            mode=pool.mode,
            plan=SizePlan(read=0, needed=0, desired=0, coverage=coverage),
            shapes=(),
            lead_seconds=state.lead_seconds(pool.lead_minutes),
            now=now,
            obstacle=(Reason.NO_SUCH_GROUP, f"there is no group {pool.group or pool.nodegroup}"),
        )
        return Look(state, own, situation)

    def _with_neighbours(
        self, pool: Pool, view: LedgerView, state: PoolState, plan: SizePlan, own: tuple[Reservation, ...], now: float
    ) -> PoolState:
        """The state with what is passed on to fallback pools, and how this pool stands in for others."""
        ours = {r.reference for r in own}
        falls_back = state.backs_off(now) and state.failure_reason in FALLS_BACK
        shortfalls = {ref: c.short if falls_back else 0 for ref, c in plan.coverage.items() if ref in ours}
        # A pool that only observes would report what it would buy, and buy nothing.
        acting = (p for name in pool.fallback if (p := self.settings.pool(name)) and p.mode == "act")
        fallback = [(p.name, view.state(p.name)) for p in acting]
        state = lend(state, shortfalls, fallback, now)
        nothing = (Coverage(ref, outstanding=0, arrived=0, placed=0, short=0) for ref in plan.impossible)
        return stand_in(state, (c for c in (*plan.coverage.values(), *nothing) if c.reference not in ours))


def live_reservations(pool: Pool, view: LedgerView, now: float) -> tuple[Reservation, ...]:
    """The pool's own reservations that ask for nodes now."""
    lead_seconds = view.state(pool.name).lead_seconds(pool.lead_minutes)
    return tuple(r for r in view.reservations if r.pool == pool.name and r.phase(now, lead_seconds) is Phase.LIVE)


def _obstacle(
    view: LedgerView,
    state: PoolState,
    group: Group,
    plan: SizePlan,
    busy: str,
    now: float,
    *,
    being_refreshed: bool,
) -> tuple[Reason, str]:
    """What keeps the pool from having room for all, most telling first."""
    beside = "; an instance refresh is replacing instances of the group" if being_refreshed else ""
    if view.paused:
        return Reason.PAUSED, "an operator paused Firstbell"
    if state.backs_off(now) and state.failure_reason:
        return Reason(state.failure_reason), state.failure_detail + beside
    if state.contested(now):
        return Reason.OTHER_WRITER, "another writer lowers this group: undone three times within 15 minutes"
    if busy:
        return Reason.BUSY_GROUP, busy + beside
    if plan.capped:
        never = f"; no node joined from {', '.join(plan.never_joined)}" if plan.never_joined else ""
        return Reason.MAX_SIZE, f"{plan.needed} units are needed and MaxSize is {group.max_size}{never}{beside}"
    return Reason.UNPLACEABLE, "no node that the group launches takes these pods"
