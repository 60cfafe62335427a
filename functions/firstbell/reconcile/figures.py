"""How a pool stands, in figures that somebody can watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.capacity.density import places

if TYPE_CHECKING:
    from firstbell.capacity.pools import Pool
    from firstbell.reconcile.look import Look
    from firstbell.telemetry import Telemetry


def emit_figures(pool: Pool, look: Look, telemetry: Telemetry) -> None:
    """What a look found. What could not be seen is left out rather than told as zero (a gap, not a collapse)."""
    if look.group is None or look.seen is None:
        return
    plan = look.situation.plan
    outstanding = sum(plan.coverage[r.reference].outstanding for r in look.own if r.reference in plan.coverage)
    telemetry.emit("OutstandingPods", outstanding, pool=pool.name)
    telemetry.emit("DesiredUnits", look.group.desired, pool=pool.name)
    telemetry.emit("HeadroomUnknown", 0 if look.seen.sight.known else 1, pool=pool.name)
    if look.seen.sight.known:
        free = look.seen.sight.usable
        telemetry.emit("UsableNodes", len(free), pool=pool.name)
        telemetry.emit("HeadroomPods", sum(places(node.free, pool.pod) for node in free), pool=pool.name)
        telemetry.emit("NodesNeverJoined", len(plan.never_joined), pool=pool.name)
