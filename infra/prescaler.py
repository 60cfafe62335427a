"""Signals to capacity: the rules on the bus, and what becomes of signals that the function could not handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import names
from infra.acknowledged import acknowledge

if TYPE_CHECKING:
    from infra.function import CapabilityFunction
    from infra.operator_file import ClusterEntry, OperatorFile

MOST_RETRIES = 2


class Prescaler(Construct):
    """Routes each signal to the one function that serves its region; a region that nobody lists is answered here."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        file: OperatorFile,
        cluster: ClusterEntry,
        bus: events.IEventBus,
        handler: CapabilityFunction,
    ) -> None:
        super().__init__(scope, construct_id)
        self._cluster = cluster
        self._bus = bus
        self.failures = sqs.Queue(
            self,
            "Failures",
            queue_name=f"{names.function_name(cluster.name, 'prescale')}-failures",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        acknowledge(self.failures, "SQS3", "It is itself where failed invocations and undelivered events go.")
        handler.function.configure_async_invoke(
            retry_attempts=MOST_RETRIES, on_failure=destinations.SqsDestination(self.failures)
        )
        elsewhere = {region: name for region, name in file.cluster_by_region().items() if name != cluster.name}
        elsewhere.pop(cluster.region, None)
        self._serve(handler, sorted(elsewhere))
        if portals := sorted({portal.source for portal in cluster.portals}):
            self._answer_others(handler, portals)
        if elsewhere:
            self._forward(elsewhere)

    def _serve(self, handler: CapabilityFunction, other_regions: list[str]) -> None:
        """Every signal that no other region serves: one without a region, or of an unlisted one, is answered too."""
        detail: dict[str, Any] = {"region": [{"exists": False}, {"anything-but": other_regions}]}
        events.Rule(
            self,
            "Signals",
            event_bus=self._bus,
            description="Demand signals of this region, and those that no listed region serves",
            event_pattern=events.EventPattern(detail_type=names.SIGNALS, detail=detail if other_regions else None),
            targets=[targets.LambdaFunction(handler.function, dead_letter_queue=self.failures)],
        )

    def _answer_others(self, handler: CapabilityFunction, portals: list[str]) -> None:
        """A portal that misspells the detail-type is answered, too."""
        events.Rule(
            self,
            "Others",
            event_bus=self._bus,
            description="Whatever else the portals send: to be rejected by name",
            event_pattern=events.EventPattern(source=portals, detail_type=events.Match.anything_but(*names.SIGNALS)),
            targets=[targets.LambdaFunction(handler.function, dead_letter_queue=self.failures)],
        )

    def _forward(self, elsewhere: dict[str, str]) -> None:
        stack = Stack.of(self)
        role = iam.Role(
            self,
            "ForwardingRole",
            role_name=names.forwarding_role_name(self._cluster.name),
            assumed_by=iam.ServicePrincipal("events.amazonaws.com"),
            description="Firstbell: carries demand signals to the buses of other regions",
        )
        for region, name in sorted(elsewhere.items()):
            arn = f"arn:{stack.partition}:events:{region}:{stack.account}:event-bus/{names.bus_name(name)}"
            bus = events.EventBus.from_event_bus_arn(self, f"Bus-{region}", arn)
            events.Rule(
                self,
                f"Forward-{region}",
                event_bus=self._bus,
                description=f"Demand signals of {region}, to {name}",
                event_pattern=events.EventPattern(detail_type=names.SIGNALS, detail={"region": [region]}),
                targets=[targets.EventBus(bus, role=role, dead_letter_queue=self.failures)],
            )
