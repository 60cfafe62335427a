"""The end of the stage clock: when the first pod of a reservation was Ready, and when its image was there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firstbell.capacity.stages import caused_at, first_pod
from firstbell.errors import FirstbellError

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstbell.capacity.reservations import Reservation
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.reconcile.look import Look
    from firstbell.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class StageClock:
    connect: Callable[[], KubernetesCluster]
    telemetry: Telemetry

    def read(self, reservation: Reservation, look: Look) -> Reservation:
        """The reservation with the moment of its first Ready pod, once there is one; its stages leave as metrics."""
        progress = reservation.progress
        if progress.first_pod_ready_at or not progress.ready_at or look.seen is None:
            return reservation
        situation = look.situation
        pod = first_pod(reservation, situation.lead_seconds, look.seen.bound)
        if pod is None:
            return reservation
        cause = caused_at(reservation, situation.lead_seconds)
        stages = {"first_pod_ready": pod.ready_at - cause}
        try:
            pull = self.connect().image_pulls(pod.namespace, [pod.uid]).get(pod.uid)
        except FirstbellError:
            pull = None  # the clock is worth no failed run
        if pull is not None:
            stages["image_pulled"] = pull.pulled_at - cause
        for stage, seconds in stages.items():
            self.telemetry.emit("StageSeconds", max(0.0, seconds), pool=situation.pool, stage=stage)
        return replace(reservation, progress=replace(progress, first_pod_ready_at=pod.ready_at))
