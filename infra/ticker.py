"""The tick: once a minute, and at once when a launch has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra import names
from infra.operator_file import group_name
from infra.schedule import Rate

if TYPE_CHECKING:
    from infra.function import CapabilityFunction
    from infra.operator_file import ClusterEntry


class Ticker(Construct):
    """Runs the function. A tick that fails is not tried again: the next one looks at everything anew."""

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: ClusterEntry, handler: CapabilityFunction
    ) -> None:
        super().__init__(scope, construct_id)
        Rate(
            self,
            "EveryMinute",
            name=names.function_name(cluster.name, "tick"),
            description=f"Firstbell: looks after {cluster.name} every minute",
            expression="rate(1 minute)",
            handler=handler,
        )
        groups = [group_name(cluster, pool) or {"prefix": f"eks-{pool.nodegroup}-"} for pool in cluster.pools]
        events.Rule(
            self,
            "LaunchFailed",
            description="A group of ours could not launch an instance",
            event_pattern=events.EventPattern(
                source=["aws.autoscaling"],
                detail_type=["EC2 Instance Launch Unsuccessful"],
                detail={"AutoScalingGroupName": groups},
            ),
            targets=[targets.LambdaFunction(handler.function, retry_attempts=0, max_event_age=Duration.seconds(60))],
        )
