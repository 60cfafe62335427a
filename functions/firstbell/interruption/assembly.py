"""Puts the drainer together for one Lambda environment. Imported only once a message asks something of us."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from firstbell.cloud.capacity_reservations import CapacityReservations
from firstbell.cloud.interruption_queue import InterruptionQueue
from firstbell.cloud.load_balancers import LoadBalancers
from firstbell.interruption.claiming import Claimer
from firstbell.interruption.cordon import Cordoner
from firstbell.interruption.evict import Evictor
from firstbell.interruption.finish import Finisher
from firstbell.interruption.service import Drainer
from firstbell.interruption.surroundings import Surveyor
from firstbell.interruption.telling import Teller
from firstbell.settings import variable
from firstbell.wiring import Wiring

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstbell.interruption.replace import Replacer

THREADS = 16
"""As many as the API server's client keeps connections."""


class InterruptionWiring(Wiring):
    """Wiring, and what only drains need. Clients are made here, by one thread: boto3 cannot make them in several."""

    @cached_property
    def queue(self) -> InterruptionQueue:
        urls = (variable("FIRSTBELL_QUEUE_URL"), variable("FIRSTBELL_DEAD_LETTER_URL"))
        return InterruptionQueue(self.clients, *urls)

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(THREADS)

    def drainer(self, holder: str, time_left: Callable[[], float]) -> Drainer:
        """`holder` is unique to the invocation, `time_left` its seconds. Raises RetryLater or AccessDenied where EKS
        does not say where its API server is."""
        clients = self.clients
        _ = (clients.sqs, clients.dynamodb, clients.autoscaling, clients.events, clients.elbv2)
        clock = time.time
        cluster, threads, telemetry = self.cluster, self.threads, self.telemetry
        return Drainer(
            ledger=self.drain_ledger,
            queue=self.queue,
            teller=Teller(self.bus, self.settings.name, telemetry),
            telemetry=telemetry,
            surveyor=Surveyor(
                settings=self.settings,
                ledger=self.drain_ledger,
                autoscaling=self.autoscaling,
                reservations=CapacityReservations(clients),
                cluster=cluster,
                group_name=self.group_name,
                threads=threads,
            ),
            claimer=Claimer(self.drain_ledger, self.queue, clock),
            cordoner=Cordoner(cluster, self.drain_ledger, LoadBalancers(clients), telemetry, clock),
            evictor=Evictor(cluster, threads, telemetry, clock, time_left),
            finisher=Finisher(cluster, self.autoscaling, telemetry, clock),
            replacer=lambda: self._replacer(holder),
            threads=threads,
            clock=clock,
        )

    def _replacer(self, holder: str) -> Replacer:
        from firstbell.interruption.replace import Replacer

        return Replacer(
            settings=self.settings,
            cluster=self.cluster,
            autoscaling=self.autoscaling,
            ledger=self.ledger,
            drains=self.drain_ledger,
            telemetry=self.telemetry,
            clock=time.time,
            holder=holder,
        )
