"""A signal as the command line's options say it, checked as the function will check it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cli.answers import wrong_use
from firstbell.prescale.plan import Origin, Refused, admit
from firstbell.prescale.service import _demand as demand_of
from firstbell.prescale.signals import parse_signal

if TYPE_CHECKING:
    from cli.connection import Connection
    from firstbell.cloud.ledger import LedgerView
    from firstbell.prescale.plan import Admitted, Repeated
    from firstbell.settings import Cluster, Portal


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of `signal` and `plan`. None = not given."""

    pods: int
    reference: str
    pool: str | None = None
    starts_at: str | None = None
    ends_at: str | None = None
    hold_minutes: int | None = None
    cpu: str | None = None
    memory: str | None = None
    gpu: int | None = None
    revision: int | None = None

    def detail(self, cluster: Cluster) -> dict[str, Any]:
        """The event's detail: only what was given, besides region and reference."""
        pod = {"cpu": self.cpu, "memory": self.memory, "gpu": self.gpu}
        given = {
            "pool": self.pool,
            "pod": {name: value for name, value in pod.items() if value is not None} or None,
            "starts_at": self.starts_at,
            "ends_at": self.ends_at,
            "hold_minutes": self.hold_minutes,
            "revision": self.revision,
        }
        return {"region": cluster.region, "pods": self.pods, "reference": self.reference} | {
            name: value for name, value in given.items() if value is not None
        }


def decide(
    connection: Connection, detail: dict[str, Any], source: str, account: str, view: LedgerView
) -> Admitted | Repeated | Refused:
    """What `prescale` would decide of this signal, were it delivered now from that account and source."""
    signal = parse_signal(detail)
    if isinstance(signal, list):
        return Refused(tuple((problem.field, problem.problem) for problem in signal))
    now = connection.clock()
    origin = Origin(event_id=str(detail["reference"]), account=account, source=source, sent_at=now)
    return admit(
        demand_of(signal), origin, cluster=connection.settings, stored=view.reservations, now=connection.clock()
    )


def portal_of(settings: Cluster, source: str | None) -> Portal:
    """The portal that the operator speaks for: the one of `source`, else the file's only one."""
    portals = [portal for portal in settings.portals if source in (None, portal.source)]
    if len({portal.source for portal in portals}) == 1:
        return portals[0]
    listed = ", ".join(portal.source for portal in settings.portals) or "no portal is listed in the operator's file"
    said = f"is {source!r}" if source else "is needed where not just one portal is listed"
    raise wrong_use(f"--source: {said}; allowed: {listed}")


def problems_in_words(refused: Refused) -> list[str]:
    return [f"{field} {problem}" for field, problem in refused.problems]
