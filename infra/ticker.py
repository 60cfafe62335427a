"""The tick: once a minute, and at once when a launch has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra import names
from infra.operator_file import group_name

if TYPE_CHECKING:
    from infra.function import CapabilityFunction
    from infra.operator_file import ClusterEntry


class Ticker(Construct):
    """Runs the function. A tick that fails is not tried again: the next one looks at everything anew."""

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster: ClusterEntry, handler: CapabilityFunction
    ) -> None:
        super().__init__(scope, construct_id)
        handler.function.configure_async_invoke(retry_attempts=0, max_event_age=Duration.seconds(60))
        scheduler_role = iam.Role(
            self,
            "SchedulerRole",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}}
            ),
            description=f"Firstbell: runs the tick of {cluster.name}",
        )
        scheduler_role.add_to_principal_policy(
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[handler.function.function_arn])
        )
        scheduler.CfnSchedule(
            self,
            "EveryMinute",
            name=names.function_name(cluster.name, "tick"),
            description=f"Firstbell: looks after {cluster.name} every minute",
            schedule_expression="rate(1 minute)",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=handler.function.function_arn,
                role_arn=scheduler_role.role_arn,
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=0, maximum_event_age_in_seconds=60
                ),
            ),
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
