"""Looks at pools as tick does and writes nothing: no group, no node, no lease, no memory, no metric."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cli.connection import Silence
from firstbell.reconcile.announcements import tell
from firstbell.reconcile.look import Looker
from firstbell.reconcile.reading import ClusterReading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cli.connection import Connection
    from firstbell.capacity.reservations import Reservation
    from firstbell.cloud.ledger import LedgerView
    from firstbell.outcomes import Outcome
    from firstbell.reconcile.look import Look

MOST_ROUNDS = 5
"""How often a pool and its fallback pools are looked at in turn, until neither asks the other for anything else."""


class Observer:
    """One reading of the cluster for every pool that is looked at."""

    def __init__(self, connection: Connection) -> None:
        self.settings = connection.settings
        self.reading = ClusterReading(connection.cluster, self.settings)
        self._looker = Looker(
            settings=self.settings,
            autoscaling=connection.autoscaling,
            instance_types=connection.instance_types,
            telemetry=Silence(),
            group_name=connection.group_name,
            connect=connection.cluster,
            thorough=True,  # as tick looks: launches that failed are seen
            writes=False,
        )

    def look(self, pool: str, view: LedgerView, now: float) -> Look:
        """As a function would find it now."""
        observed = self.settings.pool(pool)
        assert observed is not None  # noqa: S101  # callers name pools of these settings
        return self._looker.look(observed, view, self.reading, now)

    def foresee(self, reservation: Reservation, view: LedgerView, at: float) -> Foresight:
        """What a function would find and say if the reservation were stored, at `at`, with its fallback pools asked."""
        view = view.with_reservation(reservation)
        look = self.look(reservation.pool, view, at)
        neighbours: dict[str, Look] = {}
        for _ in range(MOST_ROUNDS):
            view = _remembering(view, {reservation.pool: look, **neighbours})
            lent = look.situation.lent
            neighbours = {name: self.look(name, view, at) for name in lent}
            view = _remembering(view, neighbours)
            look = self.look(reservation.pool, view, at)
            if look.situation.lent == lent:
                break
        return Foresight(reservation, look, neighbours, tell(reservation, look.situation).outcomes)


@dataclass(frozen=True, slots=True)
class Foresight:
    reservation: Reservation
    look: Look
    neighbours: Mapping[str, Look]
    """Fallback pools that would be asked, by name."""
    outcomes: tuple[Outcome, ...]
    """What would be said at once."""


def _remembering(view: LedgerView, looks: Mapping[str, Look]) -> LedgerView:
    return replace(view, pools={**view.pools, **{name: look.state for name, look in looks.items()}})
