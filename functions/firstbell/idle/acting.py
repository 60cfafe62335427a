"""What a visit writes: marks on nodes, MinSize, evictions of system pods, removals. One step after another, each of
which leaves the memory as it is true then, so that a run that dies, or meets an error, is carried on by the next."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from firstbell.cluster.cordons import CordonMark
from firstbell.cluster.evictions import EvictionResult
from firstbell.errors import Conflict, FirstbellError, NotFound
from firstbell.idle.minimum import LOWERED
from firstbell.idle.removal import DemandChanged
from firstbell.idle.verdicts import Step, Verdict
from firstbell.reconcile.reopening import TRIES, take_back_mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from firstbell.capacity.groups import Group
    from firstbell.capacity.idle_memory import IdleMemory
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.reservations import Reservation
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.idle.lease import HeldLease
    from firstbell.idle.removal import Remover
    from firstbell.idle.sizes import MinSizes
    from firstbell.idle.verdicts import Surroundings
    from firstbell.telemetry import Telemetry

MARK_KIND = "quiet"
RESERVE_SECONDS = 20.0
"""With less than this left to the run, nothing more is begun."""


@dataclass(slots=True)
class Acting:
    """One pool's writes, under its lease. An error ends them and is kept in `errors`."""

    pool: Pool
    group: Group
    lease: HeldLease
    cluster: KubernetesCluster
    sizes: MinSizes
    telemetry: Telemetry
    clock: Callable[[], float]
    seconds_left: Callable[[], float]
    memory: IdleMemory
    errors: list[FirstbellError] = field(default_factory=list)

    def give_back(self, verdicts: Iterable[Verdict]) -> None:
        def uncordon(verdict: Verdict) -> None:
            take_back_mark(self.cluster, verdict.node_name)
            left = tuple(i for i in self.memory.marked if i != verdict.instance_id)
            self.memory = replace(self.memory, marked=left)

        self._each(verdicts, Step.UNCORDON, uncordon)

    def lower_minimum(self) -> None:
        def lower() -> None:
            self.sizes.change(self.pool, self.group, LOWERED)
            self.memory = replace(self.memory, min_lowered_at=self.clock())

        self._attempt(lower)

    def restore_minimum(self, min_size: int) -> None:
        def restore() -> None:
            self.sizes.change(self.pool, self.group, min_size)
            self.memory = replace(self.memory, min_before=None, min_lowered_at=0.0)

        self._attempt(restore)

    def cordon(self, verdicts: Iterable[Verdict]) -> None:
        self._each(verdicts, Step.CORDON, lambda verdict: mark_idle(self.cluster, verdict.node_name, self.clock()))

    def move_system_pods(self, verdicts: Sequence[Verdict]) -> None:
        """Asks for evictions. Budgets are respected; whoever may not move now is asked again at the next evaluation."""

        def move(verdict: Verdict) -> None:
            for pod in verdict.moving:
                eviction = self.cluster.evict(pod, pod.grace_seconds)
                if eviction.result not in (EvictionResult.ACCEPTED, EvictionResult.GONE):
                    self.telemetry.log.warning("system pod stays", pod=pod.name, answer=str(eviction.result))

        for step in (Step.CORDON, Step.WAIT, Step.REMOVE):
            self._each(verdicts, step, move)

    def remove(
        self, verdicts: Sequence[Verdict], remover: Remover, around: Surroundings, reservations: tuple[Reservation, ...]
    ) -> dict[str, Verdict]:
        """Instance id -> the verdict of its second look. What it finds not to be idle is given back at once."""
        second: dict[str, Verdict] = {}

        def look_again(verdict: Verdict) -> None:
            try:
                again = remover.remove(verdict, self.group, self.memory, around, reservations, self.lease)
            except DemandChanged:
                self.lease.demand_changed = True
                return
            second[verdict.instance_id] = again
            if again.goes:
                self.memory = self.memory.without(verdict.instance_id)
                self.telemetry.emit("NodesRemoved", pool=self.pool.name)
                self.telemetry.log.info("idle node removed", node=verdict.node_name, instance=verdict.instance_id)

        self._each([v for v in verdicts if v.goes], Step.REMOVE, look_again)
        unsure = [v.instance_id for v in verdicts if v.goes and v.instance_id not in second] if self.errors else []
        self.memory = replace(self.memory, leaving={i: t for i, t in self.memory.leaving.items() if i in unsure})
        self.give_back(second.values())
        return second

    def _each(self, verdicts: Iterable[Verdict], step: Step, do: Callable[[Verdict], None]) -> None:
        for verdict in verdicts:
            if verdict.step is step:
                self._attempt(lambda verdict=verdict: do(verdict))  # type: ignore[misc]

    def _attempt(self, do: Callable[[], None]) -> None:
        """Unless we have to stop. A node that is gone, or that others keep changing, is passed over."""
        if self.errors or self.seconds_left() < RESERVE_SECONDS or not self.lease.still_ours():
            return
        try:
            do()
        except (Conflict, NotFound) as error:
            self.telemetry.log.warning("passed over", pool=self.pool.name, error=str(error))
        except FirstbellError as error:
            self.errors.append(error)


def mark_idle(cluster: KubernetesCluster, node_name: str, now: float) -> None:
    """Cordons the node in idle's name. Raises NotFound, Conflict where others keep changing it."""
    for attempt in range(TRIES):
        try:
            cluster.cordon(cluster.node(node_name), CordonMark("idle", MARK_KIND, now))
            return
        except Conflict:
            if attempt == TRIES - 1:
                raise
