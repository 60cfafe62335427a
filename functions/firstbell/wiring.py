"""Puts the parts together for one Lambda environment: lazily, so that what a run does not touch costs nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from firstbell.cloud.autoscaling import AutoScaling
from firstbell.cloud.bus import Bus
from firstbell.cloud.eks import Eks
from firstbell.cloud.ledger import Ledger
from firstbell.cloud.session import Clients
from firstbell.settings import deployment_from_environment, load_cluster
from firstbell.telemetry import Telemetry

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

    from firstbell.capacity.pools import Pool
    from firstbell.cloud.drain_ledger import DrainLedger
    from firstbell.cloud.instance_types import InstanceTypes
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.reconcile.reading import ClusterReading, RecentDaemonSets
    from firstbell.reconcile.reconciler import Reconciler
    from firstbell.settings import Cluster, Deployment


@dataclass
class Wiring:
    """One per environment; clients, tokens and what EC2 and EKS said are kept between its runs."""

    logger: Logger
    settings: Cluster = field(default_factory=load_cluster)
    deployment: Deployment = field(default_factory=deployment_from_environment)
    clients: Clients = field(default_factory=Clients)

    @cached_property
    def telemetry(self) -> Telemetry:
        return Telemetry(self.settings.name, self.logger)

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.clients, self.deployment.ledger_table, self.settings.name)

    @cached_property
    def drain_ledger(self) -> DrainLedger:
        from firstbell.cloud.drain_ledger import DrainLedger

        return DrainLedger(self.clients, self.deployment.ledger_table, self.settings.name)

    @cached_property
    def bus(self) -> Bus:
        return Bus(self.clients, self.deployment.bus_name)

    @cached_property
    def autoscaling(self) -> AutoScaling:
        return AutoScaling(self.clients)

    @cached_property
    def instance_types(self) -> InstanceTypes:
        from firstbell.cloud.instance_types import InstanceTypes

        return InstanceTypes(self.clients)

    @cached_property
    def eks(self) -> Eks:
        return Eks(self.clients)

    @cached_property
    def cluster(self) -> KubernetesCluster:
        """Raises RetryLater, AccessDenied or NotFound where EKS does not say where its API server is."""
        from firstbell.cluster.client import ApiServer
        from firstbell.cluster.kubernetes import KubernetesCluster

        endpoint = self.eks.describe(self.settings.name)
        token_source = self.eks.token_source(self.settings.name)
        return KubernetesCluster(ApiServer(endpoint.endpoint, endpoint.ca_data, token_source, time.time))

    def group_name(self, pool: Pool) -> str:
        if pool.group is not None:
            return pool.group
        return self.eks.group_of_nodegroup(self.settings.name, pool.nodegroup or "")

    def reading(self) -> ClusterReading:
        from firstbell.reconcile.reading import ClusterReading

        return ClusterReading(lambda: self.cluster, self.settings, self._recent_daemonsets)

    @cached_property
    def _recent_daemonsets(self) -> RecentDaemonSets:
        from firstbell.reconcile.reading import RecentDaemonSets

        return RecentDaemonSets(lambda: self.cluster, time.time)

    def reconciler(self, holder: str, *, thorough: bool) -> Reconciler:
        """`holder` names the run; it must be unique to it. A thorough one sets holds and reads the stage clock, too."""
        from firstbell.reconcile.arrivals import StageClock
        from firstbell.reconcile.look import Looker
        from firstbell.reconcile.reconciler import Reconciler

        looker = Looker(
            settings=self.settings,
            autoscaling=self.autoscaling,
            instance_types=self.instance_types,
            telemetry=self.telemetry,
            group_name=self.group_name,
            connect=lambda: self.cluster,
            thorough=thorough,
        )
        stages = StageClock(lambda: self.cluster, self.telemetry) if thorough else None
        return Reconciler(self.ledger, looker, self.bus, self.telemetry, time.time, holder, stages)
