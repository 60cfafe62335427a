"""What one look at a pool means for a reservation: which outcomes are due, and what has to be remembered. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict

from firstbell.capacity.density import density
from firstbell.capacity.stages import caused_at, node_stages
from firstbell.outcomes import CapacityReady, CapacityRequested, CapacityShort, FieldProblem, SignalRejected
from firstbell.reconcile.remedies import REMEDIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from firstbell.capacity.cluster_view import Node
    from firstbell.capacity.density import NodeShape
    from firstbell.capacity.failures import Reason
    from firstbell.capacity.reservations import Reservation
    from firstbell.capacity.sizing import Coverage, SizePlan
    from firstbell.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Situation:
    """How the pool stands after this look, as far as its reservations are concerned."""

    cluster: str
    pool: str
    mode: str
    """"act", "observe", or "paused"."""
    plan: SizePlan
    shapes: Sequence[NodeShape]
    lead_seconds: float
    now: float
    nodes: Sequence[Node] = ()
    """Usable nodes."""
    running: Mapping[str, float] = field(default_factory=dict)
    """Instance id -> when its launch was complete, where known."""
    headroom_known: bool = True
    obstacle: tuple[Reason, str] | None = None
    """What keeps the pool from growing, if anything, and its particulars."""
    unbought: bool = False
    """Whether what the plan asks for is not on its way: the obstacle stood in the way of writing it."""
    lent: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Fallback pool -> reference -> pods passed on to it."""
    awaited_elsewhere: Mapping[str, int] = field(default_factory=dict)
    """Reference -> pods that fallback pools will have room for, and do not have yet."""
    unanswered: Mapping[str, int] = field(default_factory=dict)
    """Reference -> pods that were passed on just now."""


@dataclass(frozen=True, slots=True)
class Told:
    """The reservation as it is to be remembered, and the outcomes that are due for it."""

    reservation: Reservation
    outcomes: tuple[Outcome, ...] = ()
    pods_short: int = 0
    became_ready: bool = False
    became_late: bool = False


class _Common(TypedDict):
    outcome_id: str
    cluster: str
    pool: str
    seconds_since_cause: float
    reference: str


def tell(reservation: Reservation, situation: Situation) -> Told:
    """What to say of one reservation of this pool. What its progress says was said before is not said again."""
    if why := situation.plan.impossible.get(reservation.reference):
        return _reject(reservation, situation, why)
    coverage = situation.plan.coverage[reservation.reference]
    progress = reservation.progress
    outcomes: list[Outcome] = []
    if not progress.requested_at and situation.shapes:
        raised = situation.plan.raises and situation.mode == "act"
        progress = replace(
            progress,
            requested_at=situation.now,
            asked_at=progress.asked_at or situation.now,
            raised_at=situation.now if raised else 0.0,
        )
        outcomes.append(_requested(reservation, coverage, situation))
    became_ready = not progress.ready_at and _covered(coverage, situation)
    if became_ready:
        progress = replace(progress, ready_at=situation.now)
        outcomes.append(_ready(replace(reservation, progress=progress), coverage, situation))
    short = _short(reservation, coverage, situation)
    if short is not None and _fingerprint(short) != progress.short:
        outcomes.append(short)
    became_late = not progress.late and not progress.ready_at and _starts_without(reservation, situation.now)
    progress = replace(progress, short=_fingerprint(short) if short else "", late=progress.late or became_late)
    return Told(
        reservation=replace(reservation, progress=progress),
        outcomes=tuple(outcomes),
        pods_short=short.pods_short if short else 0,
        became_ready=became_ready,
        became_late=became_late,
    )


def _starts_without(reservation: Reservation, now: float) -> bool:
    """Whether an announced class has begun. One that is signalled as it starts cannot be late by our doing."""
    return reservation.signalled_at < reservation.starts_at <= now


def _covered(coverage: Coverage, situation: Situation) -> bool:
    return situation.headroom_known and coverage.ready and not situation.awaited_elsewhere.get(coverage.reference)


def _common(reservation: Reservation, situation: Situation, kind: str) -> _Common:
    # The envelope's time tells one signal under a reference from its correction.
    return {
        "outcome_id": f"{reservation.reference}/{reservation.signalled_at:.3f}/{kind}",
        "cluster": situation.cluster,
        "pool": situation.pool,
        "seconds_since_cause": round(situation.now - caused_at(reservation, situation.lead_seconds), 3),
        "reference": reservation.reference,
    }


def _requested(reservation: Reservation, coverage: Coverage, situation: Situation) -> Outcome:
    smallest = min((density(shape, reservation.pod) for shape in situation.shapes), key=lambda d: d.pods)
    return CapacityRequested(
        **_common(reservation, situation, "requested"),
        pods=reservation.pods,
        outstanding_pods=coverage.outstanding,
        placed_pods=coverage.placed,
        desired_before=situation.plan.read,
        desired_after=situation.plan.desired,
        density=smallest.pods,
        estimated=smallest.estimated,
        headroom_known=situation.headroom_known,
        mode=situation.mode,
    )


def _ready(reservation: Reservation, coverage: Coverage, situation: Situation) -> Outcome:
    return CapacityReady(
        **_common(reservation, situation, "ready"),
        pods=reservation.pods,
        arrived_pods=coverage.arrived,
        nodes=len(situation.nodes),
        stages=node_stages(reservation, situation.lead_seconds, situation.nodes, situation.running),
    )


def _short(reservation: Reservation, coverage: Coverage, situation: Situation) -> CapacityShort | None:
    pods_short = coverage.outstanding - coverage.placed if situation.unbought else coverage.short
    if pods_short <= 0 or situation.obstacle is None:
        return None
    reason, detail = situation.obstacle
    reference = reservation.reference
    fallback = {pool: pods[reference] for pool, pods in situation.lent.items() if reference in pods}
    pods_short = max(0, pods_short - situation.unanswered.get(reference, 0))
    return CapacityShort(
        **_common(reservation, situation, f"short/{reason}" if pods_short else f"short/{reason}/passed-on"),
        pods=reservation.pods,
        pods_short=pods_short,
        reason=str(reason),
        detail=detail,
        remedy=REMEDIES[reason],
        fallback=fallback,
    )


def _fingerprint(short: CapacityShort) -> str:
    """The same while the same is to be said: that fallback pools see to it, and that they do not, are two things."""
    return short.outcome_id.partition("/short/")[2]


def _reject(reservation: Reservation, situation: Situation, why: str) -> Told:
    if situation.shapes:
        problem = FieldProblem("pod", f"{why}; allowed: a pod that fits on every node of the pool")
    else:
        problem = FieldProblem("pool", f"{why}; allowed: a pool whose instance types can be reckoned with")
    rejected = SignalRejected(**_common(reservation, situation, "rejected"), problems=[problem])
    return Told(replace(reservation, cancelled_at=situation.now), (rejected,))
