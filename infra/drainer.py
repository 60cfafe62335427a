"""Interruptions to drained nodes: the queue, the rules that fill it, and the function that empties it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import names, permissions
from infra.acknowledged import acknowledge
from infra.function import CapabilityFunction
from infra.operator_file import group_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_dynamodb as dynamodb

    from infra.operator_file import ClusterEntry

FUNCTION_TIMEOUT_SECONDS = 15
VISIBILITY_SECONDS = 6 * FUNCTION_TIMEOUT_SECONDS
"""AWS's rule for a queue that feeds a function. The function itself hides what it received for less.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html"""
MEMORY_MIB = 1769
"""A whole CPU, because a cold start is mostly imports.
https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html"""
BATCH = 10
MOST_RECEIVES = 10
"""For what nobody expects. What a retry can heal becomes a new message long before."""
GOING = ["stopping", "stopped", "shutting-down", "terminated"]


class Drainer(Construct):
    """One queue for all that says that an instance goes. Rules on the default bus fill it, and drills on our own."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: ClusterEntry,
        bus: events.IEventBus,
        table: dynamodb.ITable,
        code: lambda_.Code,
    ) -> None:
        super().__init__(scope, construct_id)
        self._cluster = cluster
        name = names.function_name(cluster.name, "interruption")
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=f"{name}-dead-letters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        self.queue = sqs.Queue(
            self,
            "Queue",
            queue_name=name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=Duration.seconds(VISIBILITY_SECONDS),
            retention_period=Duration.days(1),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=MOST_RECEIVES),
        )
        acknowledge(self.dead_letters, "SQS3", "It is itself where messages go that nobody could work on.")
        self.handler = self._function(bus, table, code)
        self._fill_from(bus)

    def _function(self, bus: events.IEventBus, table: dynamodb.ITable, code: lambda_.Code) -> CapabilityFunction:
        cluster = self._cluster
        handler = CapabilityFunction(
            self,
            "Interruption",
            capability="interruption",
            cluster=cluster,
            code=code,
            environment={
                "FIRSTBELL_BUS": bus.event_bus_name,
                "FIRSTBELL_LEDGER": table.table_name,
                "FIRSTBELL_QUEUE_URL": self.queue.queue_url,
                "FIRSTBELL_DEAD_LETTER_URL": self.dead_letters.queue_url,
            },
            permissions=[
                permissions.describe_for_drains(),
                *permissions.change_groups(self, cluster, permissions.DRAINING),
                permissions.deregister_targets(self, cluster),
                *permissions.read_cluster(self, cluster),
                permissions.use_drain_ledger(table.table_arn),
                permissions.publish_outcomes(bus.event_bus_arn),
            ],
            timeout=Duration.seconds(FUNCTION_TIMEOUT_SECONDS),
            memory_mib=MEMORY_MIB,
        )
        resource = handler.function.node.default_child
        assert isinstance(resource, lambda_.CfnFunction)  # noqa: S101  # what the construct wraps
        # A drain goes from pass to pass through this queue; Lambda would take it for a loop after 16 of them.
        # https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
        resource.recursive_loop = "Allow"
        handler.function.add_event_source(
            sources.SqsEventSource(self.queue, batch_size=BATCH, report_batch_item_failures=True)
        )
        self.queue.grant_send_messages(handler.role)
        self.dead_letters.grant_send_messages(handler.role)
        return handler

    def _fill_from(self, bus: events.IEventBus) -> None:
        groups = [
            group_name(self._cluster, pool) or {"prefix": f"eks-{pool.nodegroup}-"} for pool in self._cluster.pools
        ]
        self._rule("Spot", "aws.ec2", ["EC2 Spot Instance Interruption Warning"])
        self._rule("Rebalance", "aws.ec2", ["EC2 Instance Rebalance Recommendation"])
        self._rule("State", "aws.ec2", ["EC2 Instance State-change Notification"], {"state": GOING})
        self._rule(
            "Reservation",
            "aws.ec2",
            ["EC2 Capacity Reservation Instance Interruption Warning", "Capacity Block Reservation Expiration Warning"],
        )
        self._rule(
            "Lifecycle",
            "aws.autoscaling",
            ["EC2 Instance-terminate Lifecycle Action"],
            {"AutoScalingGroupName": groups},
        )
        self._rule(
            "ScheduledChange",
            "aws.health",
            ["AWS Health Event"],
            {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]},
        )
        self._rule("Drill", names.DRILL_SOURCE, ["Drill"], bus=bus)

    def _rule(
        self,
        construct_id: str,
        source: str,
        detail_types: list[str],
        detail: Mapping[str, Any] | None = None,
        *,
        bus: events.IEventBus | None = None,
    ) -> None:
        events.Rule(
            self,
            construct_id,
            event_bus=bus,
            description=f"Firstbell: {', '.join(detail_types)}",
            event_pattern=events.EventPattern(source=[source], detail_type=detail_types, detail=detail),
            targets=[targets.SqsQueue(self.queue, dead_letter_queue=self.dead_letters)],
        )
