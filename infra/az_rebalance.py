"""Keeps Auto Scaling from ending an instance in one zone because another zone has fewer.

CloudFormation has no property for suspended processes, so a custom resource of our own calls SuspendProcesses
(docs/adr/0006-suspend-azrebalance-by-custom-resource.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import CustomResource, Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra import names
from infra.acknowledged import PINNED_RUNTIME, acknowledge, acknowledge_wildcard
from infra.bundling import RUNTIME
from infra.permissions import GROUP_ID, group_arn

if TYPE_CHECKING:
    from aws_cdk import aws_autoscaling as autoscaling

SOURCE = Path(__file__).with_name("az_rebalance_handler.py")


class AzRebalance(Construct):
    """One small function for all groups of the stack, run by CloudFormation only."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str, region: str, groups: list[str]) -> None:
        super().__init__(scope, construct_id)
        name = names.function_name(cluster, "az-rebalance")
        log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/lambda/{name}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(role)
        arns = [group_arn(self, region, group) for group in groups]
        role.add_to_principal_policy(
            iam.PolicyStatement(sid="SuspendProcesses", actions=["autoscaling:SuspendProcesses"], resources=arns)
        )
        self._policy = role.node.find_child("DefaultPolicy")
        for arn in arns:
            acknowledge_wildcard(self._policy, arn, GROUP_ID)
        self._function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            runtime=RUNTIME,
            architecture=lambda_.Architecture.ARM_64,
            handler="index.handler",
            code=lambda_.Code.from_inline(SOURCE.read_text(encoding="utf-8")),
            role=role,
            timeout=Duration.seconds(60),
            log_group=log_group,
        )
        acknowledge(self._function, "L1", PINNED_RUNTIME)

    def suspend(self, group: autoscaling.CfnAutoScalingGroup, group_name: str) -> None:
        resource = CustomResource(
            self,
            f"Suspend-{group_name}",
            resource_type="Custom::SuspendAzRebalance",
            service_token=self._function.function_arn,
            service_timeout=Duration.minutes(5),
            properties={"AutoScalingGroupName": group_name},
        )
        resource.node.add_dependency(group, self._policy)
