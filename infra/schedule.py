"""Runs a function again and again. A run that is late is dropped: the next one looks at everything anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

if TYPE_CHECKING:
    from infra.function import CapabilityFunction


class Rate(Construct):
    """A schedule of EventBridge Scheduler, with a role that can run this function and nothing else."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        description: str,
        expression: str,
        handler: CapabilityFunction,
    ) -> None:
        super().__init__(scope, construct_id)
        handler.function.configure_async_invoke(retry_attempts=0, max_event_age=Duration.seconds(60))
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}}
            ),
            description=f"Runs the schedule {name}",
        )
        role.add_to_principal_policy(
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[handler.function.function_arn])
        )
        scheduler.CfnSchedule(
            self,
            "Schedule",
            name=name,
            description=description,
            schedule_expression=expression,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=handler.function.function_arn,
                role_arn=role.role_arn,
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=0, maximum_event_age_in_seconds=60
                ),
            ),
        )
