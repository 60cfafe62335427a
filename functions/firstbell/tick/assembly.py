"""Puts the tick together for one Lambda environment."""

from __future__ import annotations

import time

from firstbell.cloud.instances import Instances
from firstbell.cloud.interruption_queue import InterruptionQueue
from firstbell.settings import variable
from firstbell.tick.aftermath import Aftermath
from firstbell.tick.service import Ticker
from firstbell.wiring import Wiring


class TickWiring(Wiring):
    """Wiring, and what is made of it each minute."""

    def ticker(self, holder: str) -> Ticker:
        """`holder` is unique to the run."""
        return Ticker(
            settings=self.settings,
            ledger=self.ledger,
            reconciler=self.reconciler(holder, thorough=True),
            aftermath=self._aftermath(),
            read=self.reading,
            connect=lambda: self.cluster,
            telemetry=self.telemetry,
            clock=time.time,
        )

    def _aftermath(self) -> Aftermath:
        return Aftermath(
            settings=self.settings,
            ledger=self.drain_ledger,
            queue=InterruptionQueue(self.clients, variable("FIRSTBELL_QUEUE_URL")),
            autoscaling=self.autoscaling,
            instances=Instances(self.clients),
            connect=lambda: self.cluster,
            telemetry=self.telemetry,
            clock=time.time,
        )
