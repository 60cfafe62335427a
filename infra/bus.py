"""The cluster's own event bus: signals come in, outcomes go out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from constructs import Construct

from infra import names
from infra.bus_policy import Senders, bus_statements

if TYPE_CHECKING:
    from infra.operator_file import ClusterEntry, OperatorFile


ARCHIVE_DAYS = 30
"""As long as logs are kept: a signal's reference may name a course, and is not kept for ever."""


class Bus(Construct):
    """Bus `firstbell-<cluster>`. `seal` says who may use it, once the functions' roles exist."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: ClusterEntry) -> None:
        super().__init__(scope, construct_id)
        self._cluster = cluster
        self.bus = events.EventBus(
            self,
            "Bus",
            event_bus_name=names.bus_name(cluster.name),
            description=f"Firstbell: demand signals and outcomes of {cluster.name}",
        )
        # Signals only: a drill that is replayed would drain nodes again, and an outcome would be told as new.
        self.bus.archive(
            "Archive",
            archive_name=names.archive_name(cluster.name),
            description=f"Firstbell: demand signals of {cluster.name}, for replays",
            event_pattern=events.EventPattern(detail_type=names.SIGNALS),
            retention=Duration.days(ARCHIVE_DAYS),
        )

    def seal(self, file: OperatorFile, own_roles: list[str]) -> None:
        """Allow the listed portals and drills, deny every other pair of principal and source."""
        stack = Stack.of(self)
        signals: dict[str, Senders] = {}
        for portal in self._cluster.portals:
            signals.setdefault(portal.source, Senders()).add(portal.principal)
        drills = Senders()
        for principal in self._cluster.drill_sources:
            drills.add(principal)
        statements = bus_statements(
            self.bus.event_bus_arn,
            stack.partition,
            signals=signals,
            drills=drills,
            own_roles=own_roles,
            forwarding_roles=[
                f"arn:{stack.partition}:iam::{stack.account}:role/{names.forwarding_role_name(other)}"
                for other in file.cluster_by_region().values()
                if other != self._cluster.name
            ],
        )
        for statement_id, statement in statements.items():
            events.CfnEventBusPolicy(
                self,
                f"Policy-{statement_id}",
                event_bus_name=self.bus.event_bus_name,
                statement_id=statement_id,
                statement=statement,
            )
