"""A capability's Lambda function with its own role, log group and way into the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra import names
from infra.acknowledged import PINNED_RUNTIME, acknowledge, acknowledge_wildcard
from infra.bundling import RUNTIME
from infra.permissions import join_vpc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.operator_file import ClusterEntry
    from infra.permissions import Permission


class CapabilityFunction(Construct):
    """`firstbell.<capability>.handler.handler`, python3.13 on arm64."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        capability: str,
        cluster: ClusterEntry,
        code: lambda_.Code,
        environment: Mapping[str, str],
        permissions: Sequence[Permission],
        timeout: Duration,
        memory_mib: int,
    ) -> None:
        super().__init__(scope, construct_id)
        name = names.function_name(cluster.name, capability)
        log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/lambda/{name}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"Firstbell: {capability} of {cluster.name}",
        )
        log_group.grant_write(self.role)
        for permission in [*permissions, *([join_vpc()] if cluster.private_endpoint else [])]:
            self._allow(permission)
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            runtime=RUNTIME,
            architecture=lambda_.Architecture.ARM_64,
            handler=f"firstbell.{capability}.handler.handler",
            code=code,
            role=self.role,
            timeout=timeout,
            memory_size=memory_mib,
            log_group=log_group,
            tracing=lambda_.Tracing.ACTIVE,
            environment={
                **environment,
                "POWERTOOLS_METRICS_NAMESPACE": "Firstbell",
                "POWERTOOLS_LOG_LEVEL": "INFO",
            },
        )
        self._join_private_network(cluster)
        eks.CfnAccessEntry(
            self,
            "AccessEntry",
            cluster_name=cluster.name,
            principal_arn=self.role.role_arn,
            type="STANDARD",
            kubernetes_groups=[names.kubernetes_group(capability)],
        )
        acknowledge(self.function, "L1", PINNED_RUNTIME)

    def _allow(self, permission: Permission) -> None:
        self.role.add_to_principal_policy(permission.statement)
        policy = self.role.node.find_child("DefaultPolicy")
        for resource in permission.statement.resources:
            if permission.wildcard_reason:
                acknowledge_wildcard(policy, resource, permission.wildcard_reason)

    def _join_private_network(self, cluster: ClusterEntry) -> None:
        if (private := cluster.private_endpoint) is None:
            return
        resource = self.function.node.default_child
        assert isinstance(resource, lambda_.CfnFunction)  # noqa: S101  # what the construct wraps
        resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
            subnet_ids=private.subnets, security_group_ids=private.security_groups
        )
