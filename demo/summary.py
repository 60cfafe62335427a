"""What the morning left behind, turned into the two sides of the report and the table at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from demo.board import PoolBoard
from demo.measures import PodTimes, Raise, longest_waits, pending_over, quantile
from demo.tap import Heard
from demo.verdict import Side


@dataclass(frozen=True)
class Evidence:
    """From the tap, the API server, its audit log and the group authority; nothing from Firstbell itself."""

    signalled: float
    heard: Sequence[Heard]
    ready_before_class: bool
    announced: PoolBoard
    twin: PoolBoard
    pod_times: Mapping[str, PodTimes]
    raises: Mapping[str, Sequence[Raise]]
    """Group -> the calls that raised its desired capacity."""
    disturbed: str | None
    """A student's pod that somebody deleted or evicted."""

    def said(self, detail_type: str) -> list[Heard]:
        return [heard for heard in self.heard if heard.source == "firstbell" and heard.detail_type == detail_type]

    def times_of(self, pool: PoolBoard) -> dict[str, PodTimes]:
        return {name: times for name, times in self.pod_times.items() if name in pool.pods}


def begin(evidence: Evidence, pool: PoolBoard) -> float:
    """When a pool's clock begins: at the signal; for the twin, whom nobody told, when its first pod is created."""
    if pool is evidence.announced:
        return evidence.signalled
    return min((each.created for each in evidence.times_of(pool).values()), default=evidence.signalled)


def side(evidence: Evidence, pool: PoolBoard) -> Side:
    times = evidence.times_of(pool)
    raised = [each.at for each in evidence.raises[pool.name]]
    began = begin(evidence, pool)
    return Side(
        signal_to_desired_s=max(raised) - began if raised else None,
        signal_to_ready_s=max(pool.ready_at.values()) - began if pool.ready_at else None,
        pods=len(times),
        pods_running=len(pool.running),
        pods_ever_pending_over_1s=pending_over(times),
        rejected_signals=len(evidence.said("Signal Rejected")) if pool is evidence.announced else 0,
    )


def table(evidence: Evidence) -> Table:
    """The stage clock of both pools, side by side."""
    clock = Table(title="The morning in numbers", title_justify="left", caption=CAPTION, caption_justify="left")
    for heading in ("", "announced (Firstbell)", "unannounced (reactive)"):
        clock.add_column(heading, justify="right" if heading else "left")
    columns = (column(evidence, evidence.announced), column(evidence, evidence.twin))
    for label in columns[0]:
        clock.add_row(label, *(each[label] for each in columns))
    return clock


def column(evidence: Evidence, pool: PoolBoard) -> dict[str, str]:
    """One pool's stages and waits, by their labels."""
    began, numbers = begin(evidence, pool), side(evidence, pool)
    waits = longest_waits(evidence.times_of(pool))
    told = [heard.at - began for heard in evidence.said("Capacity Ready")] if pool is evidence.announced else []
    ready = [at - began for at in pool.ready_at.values()]
    raised = [each.at - began for each in evidence.raises[pool.name]]
    return {
        "desired capacity raised": ", ".join(map(seconds, raised)) or "-",
        "first node Ready": seconds(min(ready, default=None)),
        "last node Ready": seconds(max(ready, default=None)),
        "last Capacity Ready heard": seconds(max(told, default=None)),
        "nodes": str(len(ready)),
        "pods running": f"{numbers.pods_running} of {numbers.pods}",
        "wait for a node: median": seconds(quantile(waits, 0.5)),
        "wait for a node: 95th percentile": seconds(quantile(waits, 0.95)),
        "wait for a node: longest": seconds(quantile(waits, 1.0)),
        "pods that waited over a second": str(numbers.pods_ever_pending_over_1s),
        "signals rejected": str(numbers.rejected_signals),
    }


CAPTION = (
    "Announced: seconds from the portal's signal. Unannounced: seconds from its first student. Read from the group "
    "authority, the API server, its audit log, and a tap on the bus."
)


def seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"
