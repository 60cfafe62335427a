"""One pool's evaluation, under its lease: judge its nodes, remember what is about to be written, write it, say it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firstbell.capacity.pool_state import PoolState
from firstbell.idle.acting import Acting
from firstbell.idle.examine import examine
from firstbell.idle.lease import take_lease
from firstbell.idle.minimum import must_be_lowered, noticed, still_takes_effect, to_restore
from firstbell.idle.needs import demand_on, needed_instances, soon_needed
from firstbell.idle.plan import decide
from firstbell.idle.removal import Remover
from firstbell.idle.verdicts import Step, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstbell.capacity.groups import Group
    from firstbell.capacity.idle_memory import IdleMemory
    from firstbell.capacity.idle_policy import IdlePolicy
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.reservations import Reservation
    from firstbell.cloud.autoscaling import AutoScaling
    from firstbell.cloud.ledger import Ledger, LedgerView
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.idle.calendar import Hours
    from firstbell.idle.lease import HeldLease
    from firstbell.idle.sizes import MinSizes
    from firstbell.idle.survey import Survey
    from firstbell.idle.telling import Teller
    from firstbell.settings import Cluster
    from firstbell.telemetry import Telemetry

BEGUN = (Step.CORDON, Step.WAIT, Step.REMOVE)


@dataclass(frozen=True, slots=True)
class Occasion:
    """Why and on what a pool is visited."""

    pool: Pool
    hours: Hours
    day: str
    """The local date."""
    survey: Survey
    whole_cluster_goes: bool = False


@dataclass(frozen=True, slots=True)
class _Judgement:
    group: Group
    state: PoolState
    """To be remembered before anything is written."""
    verdicts: list[Verdict]
    reservations: tuple[Reservation, ...]
    lowers_minimum: bool = False
    restores_minimum: int | None = None

    @property
    def writes(self) -> bool:
        steps = {v.step for v in self.verdicts}
        return self.lowers_minimum or self.restores_minimum is not None or bool(steps - {Step.KEEP})


@dataclass(frozen=True, slots=True)
class Visitor:
    settings: Cluster
    ledger: Ledger
    autoscaling: AutoScaling
    sizes: MinSizes
    connect: Callable[[], KubernetesCluster]
    teller: Teller
    telemetry: Telemetry
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    seconds_left: Callable[[], float]
    holder: str

    def visit(self, occasion: Occasion, group_name: str) -> bool:
        """Whether somebody asked for capacity meanwhile and left it to us: the pool is then to be brought to size.

        Raises the first error that ended the visit, once what was done is remembered.
        """
        pool = occasion.pool
        lease = take_lease(self.ledger, pool.name, self.holder, self.clock, self.sleep)
        if lease is None:
            self.telemetry.log.info("pool is in other hands; next time", pool=pool.name)
            return False
        try:
            view = self.ledger.read()
            group = self.autoscaling.describe([group_name]).get(group_name)
            if view.paused or group is None:
                lease.abandon()
                return False
            judged = self._judge(occasion, group, view)
            if pool.mode == "act" and judged.writes:
                return self._act(occasion, judged, lease)
            lease.finish(self._told(occasion, group, judged.verdicts, judged.state))
            return lease.demand_changed
        except Exception:
            lease.abandon()
            raise

    def _judge(self, occasion: Occasion, group: Group, view: LedgerView) -> _Judgement:
        pool, now = occasion.pool, self.clock()
        state = view.state(pool.name)
        state = state.observed((m.instance_id for m in group.members if m.counted), group.unlaunched_units, now)
        newcomers = sum(seen_at > state.idle.counted_at for seen_at in state.first_seen.values())
        memory, hours = state.idle.counted(newcomers, now, occasion.day)
        around = occasion.survey.around(pool, self.settings, now, whole_cluster_goes=occasion.whole_cluster_goes)
        verdicts = examine(occasion.survey.candidates(group), around)
        memory = memory.seen_idle([v.instance_id for v in verdicts if v.without_users], now)
        self.telemetry.emit("NodesIdle", len(memory.idle_since), pool=pool.name)
        self.telemetry.emit("NodeHoursRemoved", hours, pool=pool.name)
        if pool.idle is None or not occasion.hours.quiet:
            return self._while_up(occasion, group, replace(state, idle=memory), verdicts)
        return self._while_quiet(occasion, pool.idle, group, view, replace(state, idle=memory), verdicts)

    def _while_up(self, occasion: Occasion, group: Group, state: PoolState, verdicts: list[Verdict]) -> _Judgement:
        memory, pool = state.idle.while_up(), occasion.pool
        restored = None
        if memory.min_before is not None and pool.mode == "act":
            current, managed = self.sizes.current(pool, group), pool.nodegroup is not None
            restored = to_restore(memory, current, group.max_size)
            waits = still_takes_effect(memory, current, managed=managed, now=self.clock())
            if restored is None and not waits:
                memory = replace(memory, min_before=None, min_lowered_at=0.0)
        marked = [v for v in verdicts if v.candidate.marked_at is not None]
        memory = replace(memory, marked=tuple(v.instance_id for v in marked))
        now = self.clock()
        back = [replace(v, step=Step.UNCORDON) for v in marked if not memory.is_leaving(v.instance_id, now)]
        return _Judgement(group, replace(state, idle=memory), back, (), restores_minimum=restored)

    def _while_quiet(
        self,
        occasion: Occasion,
        policy: IdlePolicy,
        group: Group,
        view: LedgerView,
        state: PoolState,
        verdicts: list[Verdict],
    ) -> _Judgement:
        pool, memory, now = occasion.pool, state.idle, self.clock()
        reservations = soon_needed(pool, view.reservations, view.pools, now)
        seen = occasion.survey.sight(pool, group, self.settings, now)
        demand = demand_on(pool, reservations, seen, view.pools)
        needed = needed_instances(verdicts, demand, pool, group, seen)
        current = self.sizes.current(pool, group) if verdicts else group.min_size
        memory = noticed(memory, current, managed=pool.nodegroup is not None, now=now)
        refreshing = bool(memory.idle_since) and self.autoscaling.instance_refresh_running(group.name)
        verdicts = decide(verdicts, policy, memory, group, needed=needed, refreshing=refreshing, now=now)
        begun = [v for v in verdicts if v.step in BEGUN]
        lowers = bool(begun) and pool.mode == "act" and must_be_lowered(memory, current)
        memory = replace(memory, quiet_since=memory.quiet_since or now)
        if pool.mode == "act":
            memory = _with_intents(memory, verdicts, current if lowers else None, now)
        return _Judgement(group, replace(state, idle=memory), verdicts, reservations, lowers_minimum=lowers)

    def _act(self, occasion: Occasion, judged: _Judgement, lease: HeldLease) -> bool:
        pool = occasion.pool
        if not lease.remember(judged.state):
            lease.abandon()
            return lease.demand_changed
        state = self.ledger.read().state(pool.name)
        cluster = self.connect()
        acting = Acting(
            pool=pool,
            group=judged.group,
            lease=lease,
            cluster=cluster,
            sizes=self.sizes,
            telemetry=self.telemetry,
            clock=self.clock,
            seconds_left=self.seconds_left,
            memory=state.idle,
        )
        acting.give_back(judged.verdicts)
        if judged.restores_minimum is not None:
            acting.restore_minimum(judged.restores_minimum)
        if judged.lowers_minimum:
            acting.lower_minimum()
        acting.cordon(judged.verdicts)
        acting.move_system_pods(judged.verdicts)
        second: dict[str, Verdict] = {}
        if pool.idle is not None and any(v.goes for v in judged.verdicts):
            around = occasion.survey.around(
                pool, self.settings, self.clock(), whole_cluster_goes=occasion.whole_cluster_goes
            )
            remover = Remover(self.ledger, self.autoscaling, cluster, pool.idle, self.clock)
            second = acting.remove(judged.verdicts, remover, around, judged.reservations)
        verdicts = [second.get(v.instance_id, v) for v in judged.verdicts]
        units_removed = sum(v.candidate.member.weight for v in second.values() if v.goes)
        # Else the next run that raises the group would blame another writer for what we lowered.
        state = replace(state, idle=acting.memory, wanted=max(0, state.wanted - units_removed))
        lease.finish(self._told(occasion, judged.group, verdicts, state))
        if acting.errors:
            raise acting.errors[0]
        return lease.demand_changed

    def _told(self, occasion: Occasion, group: Group, verdicts: list[Verdict], state: PoolState) -> PoolState:
        if not occasion.hours.quiet or occasion.pool.idle is None:
            return state
        return replace(
            state, idle=self.teller.tell(occasion.pool, occasion.hours, group, verdicts, state.idle, self.clock())
        )


def _with_intents(memory: IdleMemory, verdicts: list[Verdict], lowers_from: int | None, now: float) -> IdleMemory:
    """What is about to be written, so that it can be undone, or carried on, by whoever comes next."""
    return replace(
        memory,
        marked=tuple(v.instance_id for v in verdicts if v.step is Step.CORDON or v.candidate.marked_at is not None),
        leaving={i: at for i, at in memory.leaving.items() if memory.is_leaving(i, now)}
        | {v.instance_id: now for v in verdicts if v.goes},
        min_before=lowers_from if lowers_from is not None else memory.min_before,
    )
