"""Each minute: due reservations start, pools are brought to size, holds are set and released, waiting pods counted, and
what interruptions left behind is looked after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.capacity.demand import pending_pods_of
from firstbell.errors import AccessDenied, NotFound, RetryLater
from firstbell.tick.plan import pools_to_visit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from firstbell.capacity.cluster_view import Pod
    from firstbell.capacity.pools import Pool
    from firstbell.cloud.ledger import Ledger
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.reconcile.reading import ClusterReading
    from firstbell.reconcile.reconciler import Reconciler
    from firstbell.settings import Cluster
    from firstbell.telemetry import Telemetry
    from firstbell.tick.aftermath import Aftermath


@dataclass(frozen=True, slots=True)
class Ticker:
    settings: Cluster
    ledger: Ledger
    reconciler: Reconciler
    aftermath: Aftermath
    read: Callable[[], ClusterReading]
    connect: Callable[[], KubernetesCluster]
    telemetry: Telemetry
    clock: Callable[[], float]

    def tick(self) -> None:
        """One minute's run. A pool that fails does not keep the others from theirs; the first error is raised last."""
        view = self.ledger.read()
        visited = pools_to_visit(self.settings.pools, view.reservations, view.pools, self.clock())
        reading = self.read() if visited else None
        errors = self._visit(visited, reading) if reading else []
        self._count_waiting(reading)
        if not view.paused:
            errors += self.aftermath.look_after()
        self.telemetry.emit("TickRuns")
        if errors:
            raise errors[0]

    def group_failed(self, group: str) -> None:
        """Auto Scaling says that a launch of this group failed: look at its pool at once, not at the next minute."""
        named = [pool for pool in self.settings.pools if self._group_of(pool) == group]
        view = self.ledger.read()
        visited = pools_to_visit(named, view.reservations, view.pools, self.clock())
        if visited:
            self.reconciler.bring_to_size(visited, self.read, changed=True)

    def _group_of(self, pool: Pool) -> str:
        """Empty for a managed node group that has no group (yet): it is not the one that failed."""
        try:
            return self.reconciler.looker.group_name(pool)
        except NotFound:
            return ""

    def _visit(self, pools: Iterable[Pool], reading: ClusterReading) -> list[Exception]:
        errors: list[Exception] = []
        for pool in pools:
            try:
                self.reconciler.bring_to_size([pool], lambda: reading, changed=False)
            except Exception as error:
                self.telemetry.log.exception("pool could not be brought to size", pool=pool.name)
                errors.append(error)
        if isinstance(reading.failure, AccessDenied):
            self.telemetry.emit("ClusterAccessDenied")
        return errors

    def _count_waiting(self, reading: ClusterReading | None) -> None:
        """Waiting pods alarm, with or without a reservation. Only Pending pods are listed where nothing else was."""
        try:
            pods = self._pending(reading)
        except (RetryLater, AccessDenied, NotFound) as error:
            self.telemetry.log.warning("waiting pods could not be counted", error=str(error))
            if isinstance(error, AccessDenied) and reading is None:
                self.telemetry.emit("ClusterAccessDenied")
            return
        now = self.clock()
        for pool in self.settings.pools:
            waiting = pending_pods_of(pool, self.settings.pools, pods, self.settings.system_namespaces)
            self.telemetry.emit("PendingPods", len(waiting), pool=pool.name)
            longest = max((now - pod.created_at for pod in waiting), default=0.0)
            self.telemetry.emit("LongestPendingSeconds", longest, pool=pool.name)

    def _pending(self, reading: ClusterReading | None) -> list[Pod]:
        if reading is not None and (pods := reading.pending_pods()) is not None:
            return pods
        return self.connect().pending_pods()
