"""What the functions may do on AWS, statement by statement. `*` stands only where AWS has no resource for an action.

https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2autoscaling.html and its siblings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from infra.operator_file import group_name

if TYPE_CHECKING:
    from constructs import Construct

    from infra.operator_file import ClusterEntry

DESCRIBING = (
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeInstanceRefreshes",
    "autoscaling:DescribeScalingActivities",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeLaunchTemplateVersions",
)
"""Actions that AWS grants on `*` only."""
SIZING = ("autoscaling:SetDesiredCapacity", "autoscaling:SetInstanceProtection")


def describe_pools() -> iam.PolicyStatement:
    return iam.PolicyStatement(sid="DescribePools", actions=list(DESCRIBING), resources=["*"])


def change_groups(scope: Construct, cluster: ClusterEntry, actions: tuple[str, ...]) -> list[iam.PolicyStatement]:
    """`actions` on the pools' groups: by name, or by EKS's own tags where a managed node group named its group."""
    groups = f"arn:{{0}}:autoscaling:{cluster.region}:{{1}}:autoScalingGroup:*:autoScalingGroupName/"
    prefix = groups.format(Stack.of(scope).partition, Stack.of(scope).account)
    statements = []
    if named := [name for pool in cluster.pools if (name := group_name(cluster, pool))]:
        statements.append(
            iam.PolicyStatement(
                sid="ChangeGroups", actions=list(actions), resources=[f"{prefix}{name}" for name in named]
            )
        )
    if nodegroups := [pool.nodegroup for pool in cluster.pools if pool.nodegroup]:
        statements.append(
            iam.PolicyStatement(
                sid="ChangeGroupsOfNodegroups",
                actions=list(actions),
                resources=[f"{prefix}eks-*"],
                conditions={
                    "StringEquals": {
                        "aws:ResourceTag/eks:cluster-name": cluster.name,
                        "aws:ResourceTag/eks:nodegroup-name": nodegroups,
                    }
                },
            )
        )
    return statements


def read_cluster(scope: Construct, cluster: ClusterEntry) -> list[iam.PolicyStatement]:
    """The cluster's endpoint, and the groups of its managed node groups where a pool is one."""
    eks = f"arn:{Stack.of(scope).partition}:eks:{cluster.region}:{Stack.of(scope).account}:"
    statements = [
        iam.PolicyStatement(
            sid="ReadCluster", actions=["eks:DescribeCluster"], resources=[f"{eks}cluster/{cluster.name}"]
        )
    ]
    if nodegroups := [pool.nodegroup for pool in cluster.pools if pool.nodegroup]:
        statements.append(
            iam.PolicyStatement(
                sid="ReadNodegroups",
                actions=["eks:DescribeNodegroup"],
                resources=[f"{eks}nodegroup/{cluster.name}/{nodegroup}/*" for nodegroup in nodegroups],
            )
        )
    return statements


def use_ledger(table_arn: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid="UseLedger",
        actions=["dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"],
        resources=[table_arn],
    )


def publish_outcomes(bus_arn: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(sid="PublishOutcomes", actions=["events:PutEvents"], resources=[bus_arn])
