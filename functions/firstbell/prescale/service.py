"""Takes one event of a portal: refuse it, or store what it asks for and bring its pool to size."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firstbell.cloud.bus import OutcomeEvent
from firstbell.errors import Conflict, RetryLater
from firstbell.outcomes import FieldProblem, SignalRejected
from firstbell.prescale.plan import Admitted, Cancellation, Demand, Origin, PodDemand, Refused, Repeated, admit, end
from firstbell.prescale.signals import (
    DemandCancelled,
    DemandSignal,
    parse_cancellation,
    parse_envelope,
    parse_signal,
    unknown_fields,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from firstbell.capacity.pools import Pool
    from firstbell.cloud.bus import Bus
    from firstbell.cloud.ledger import Ledger, LedgerView
    from firstbell.prescale.signals import Envelope
    from firstbell.reconcile.reading import ClusterReading
    from firstbell.reconcile.reconciler import Reconciler
    from firstbell.settings import Cluster
    from firstbell.telemetry import Telemetry

SIGNAL = "Demand Signal"
CANCELLATION = "Demand Cancelled"
MOST_TRIES = 20
LONGEST_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Prescaler:
    """Raises RetryLater where a later attempt can help; the event is then delivered again and nothing is doubled."""

    settings: Cluster
    ledger: Ledger
    bus: Bus
    reconciler: Reconciler
    read: Callable[[], ClusterReading]
    telemetry: Telemetry
    clock: Callable[[], float]
    sleep: Callable[[float], None] = time.sleep

    def take(self, event: Mapping[str, Any]) -> None:
        """One event as EventBridge delivers it. Returns once it has its outcome, or is stored and others see to it."""
        envelope = parse_envelope(event)
        match envelope.detail_type:
            case "Demand Signal":
                self._signal(envelope)
            case "Demand Cancelled":
                self._cancellation(envelope)
            case other:
                problem = FieldProblem("detail-type", f"is {other!r}; allowed: {SIGNAL}, {CANCELLATION}")
                self._reject(envelope, [problem])

    def _signal(self, envelope: Envelope) -> None:
        signal = parse_signal(envelope.detail)
        if isinstance(signal, list):
            return self._reject(envelope, signal)
        self._name_unknown(DemandSignal, envelope)
        demand, origin = _demand(signal), _origin(envelope)
        for _ in range(MOST_TRIES):
            view = self.ledger.read()
            decision = admit(demand, origin, cluster=self.settings, stored=view.reservations, now=self.clock())
            match decision:
                case Refused(problems):
                    return self._reject(envelope, [FieldProblem(*p) for p in problems], pool=demand.pool)
                case Repeated(pool):
                    # Perhaps this very signal was stored by a run that died: what is left to do is done now.
                    self.telemetry.emit("SignalsRepeated")
                    return self._bring(pool, changed=False, view=view)
                case Admitted(reservation, replaces):
                    try:
                        stored = self.ledger.store(reservation, replaces, view)
                    except Conflict:
                        self._pause()
                        continue
                    self.telemetry.emit("SignalsAccepted", pool=stored.pool)
                    moved_from = replaces.pool if replaces and replaces.pool != stored.pool else ""
                    return self._bring(stored.pool, moved_from, changed=True, view=view.with_reservation(stored))
        raise RetryLater(f"the ledger kept changing through {MOST_TRIES} tries to store a signal")

    def _cancellation(self, envelope: Envelope) -> None:
        cancellation = parse_cancellation(envelope.detail)
        if isinstance(cancellation, list):
            return self._reject(envelope, cancellation)
        self._name_unknown(DemandCancelled, envelope)
        asked = Cancellation(cancellation.reference, cancellation.region, cancellation.cluster)
        for _ in range(MOST_TRIES):
            view = self.ledger.read()
            match end(asked, _origin(envelope), cluster=self.settings, stored=view.reservations):
                case Refused(problems):
                    return self._reject(envelope, [FieldProblem(*p) for p in problems])
                case Repeated():
                    return self.telemetry.emit("SignalsRepeated")
                case Admitted(ended, replaces):
                    try:
                        self.ledger.store(ended, replaces, view)
                    except Conflict:
                        self._pause()
                        continue
                    return self.telemetry.emit("SignalsCancelled")
        raise RetryLater(f"the ledger kept changing through {MOST_TRIES} tries to cancel a reservation")

    def _bring(self, *pool_names: str, changed: bool, view: LedgerView) -> None:
        pools: list[Pool] = [p for name in pool_names if name and (p := self.settings.pool(name))]
        self.reconciler.bring_to_size(pools, self.read, changed=changed, view=view)

    def _pause(self) -> None:
        self.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))  # noqa: S311  (spreads rivals; no secret)

    def _reject(self, envelope: Envelope, problems: Sequence[FieldProblem], *, pool: str | None = None) -> None:
        """Answers once and for all. The reference is the portal's own where it sent one, else the event's id."""
        named = envelope.detail.get("reference") if isinstance(envelope.detail, dict) else None
        reference = named if isinstance(named, str) and named else envelope.id
        rejected = SignalRejected(
            outcome_id=f"{envelope.id}/rejected",
            cluster=self.settings.name,
            pool=pool or "",
            seconds_since_cause=round(self.clock() - envelope.time.timestamp(), 3),
            reference=reference[:128],
            problems=list(problems),
        )
        self.bus.publish([OutcomeEvent(rejected.DETAIL_TYPE, rejected.as_detail())])
        self.telemetry.emit("SignalsRejected")
        self.telemetry.log.warning("signal rejected", problems=[f"{p.field} {p.problem}" for p in problems])

    def _name_unknown(self, model: type[DemandSignal | DemandCancelled], envelope: Envelope) -> None:
        if unknown := unknown_fields(model, envelope.detail):
            self.telemetry.log.warning("unknown fields are ignored", fields=unknown, event=envelope.id)


def _origin(envelope: Envelope) -> Origin:
    return Origin(envelope.id, envelope.account, envelope.source, envelope.time.timestamp())


def _demand(signal: DemandSignal) -> Demand:
    pod = signal.pod
    return Demand(
        region=signal.region,
        pods=signal.pods,
        reference=signal.reference,
        revision=signal.revision,
        cluster=signal.cluster,
        pool=signal.pool,
        pod=PodDemand(
            cpu=str(pod.cpu) if pod and pod.cpu is not None else None,
            memory=str(pod.memory) if pod and pod.memory is not None else None,
            gpu=pod.gpu if pod else None,
        ),
        starts_at=signal.starts_at.timestamp() if signal.starts_at else None,
        ends_at=signal.ends_at.timestamp() if signal.ends_at else None,
        hold_minutes=signal.hold_minutes,
    )
