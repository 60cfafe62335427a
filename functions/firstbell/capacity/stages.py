"""The stage clock: how long after its cause a reservation reached each stage. Pure; times are Unix seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.capacity.reservations import REFERENCE_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from firstbell.capacity.cluster_view import Node, Pod
    from firstbell.capacity.groups import Activity
    from firstbell.capacity.reservations import Reservation


def caused_at(reservation: Reservation, lead_seconds: float) -> float:
    """When the reservation began to ask for nodes: at its signal, or its lead before a later start."""
    return max(reservation.signalled_at, reservation.starts_at - lead_seconds)


def running_at(activities: Iterable[Activity]) -> dict[str, float]:
    """Instance id -> when its launch was complete. Its activity says "Launching a new EC2 instance: i-0aa"."""
    return {
        a.description.rpartition(" ")[2]: a.ended_at
        for a in activities
        if a.status == "Successful" and a.description.startswith("Launching") and a.ended_at
    }


def node_stages(
    reservation: Reservation, lead_seconds: float, nodes: Sequence[Node], running: Mapping[str, float]
) -> dict[str, float]:
    """Seconds from the cause to each stage that the nodes raised for the reservation have passed, the last of them
    counting. Where the headroom sufficed there is nothing after the signal. Nodes of other reservations raised at the
    same time count too: they cannot be told apart.
    """
    cause = caused_at(reservation, lead_seconds)
    raised_at = reservation.progress.raised_at
    stages = {"signal_received": reservation.received_at}
    if not raised_at:
        return _since(cause, stages)
    new = [node for node in nodes if node.created_at >= raised_at]
    ran = [running[node.instance_id] for node in new if node.instance_id in running]
    stages["desired_raised"] = raised_at
    if ran:
        stages["instance_running"] = max(ran)
    if new:
        stages["node_joined"] = max(node.created_at for node in new)
        stages["node_ready"] = max(node.ready_at for node in new)
    return _since(cause, stages)


def _since(cause: float, stages: Mapping[str, float]) -> dict[str, float]:
    """A class that was announced early has passed its first stages when its nodes begin to be asked for: at 0."""
    return {stage: round(max(0.0, at - cause), 3) for stage, at in stages.items()}


def first_pod(reservation: Reservation, lead_seconds: float, pods: Iterable[Pod]) -> Pod | None:
    """The first pod of the reservation that is Ready; one without a reference counts if it is young enough."""
    opens_at, reference = reservation.starts_at - lead_seconds, reservation.reference
    arrived = (
        p
        for p in pods
        if p.ready_at and p.created_at >= opens_at and p.labels.get(REFERENCE_LABEL, reference) == reference
    )
    return min(arrived, key=lambda p: p.ready_at, default=None)
