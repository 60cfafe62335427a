"""What the functions may do on AWS, statement by statement. `*` stands only where AWS has no resource for an action.

https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2autoscaling.html and its siblings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from infra.operator_file import group_name

if TYPE_CHECKING:
    from constructs import Construct

    from infra.operator_file import ClusterEntry

DESCRIBING = (
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeScalingActivities",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeLaunchTemplateVersions",
)
"""Actions that AWS grants on `*` only."""
JOINING_VPC = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
SIZING = ("autoscaling:SetDesiredCapacity", "autoscaling:SetInstanceProtection")

DRAINING = (
    "autoscaling:CompleteLifecycleAction",
    "autoscaling:DetachInstances",
    "autoscaling:RecordLifecycleActionHeartbeat",
)
DESCRIBING_DRAINS = (
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeLifecycleHooks",
    "ec2:DescribeInstances",
    "ec2:DescribeLaunchTemplateVersions",
)
"""Actions that AWS grants on `*` only, of the interruption function."""

REMOVING = ("autoscaling:TerminateInstanceInAutoScalingGroup",)
LOWERING = ("autoscaling:UpdateAutoScalingGroup",)
NODEGROUP_ID = "The ARN of a node group ends in an id that EKS chooses."
GROUP_ID = "The ARN of a group has an id in it that Auto Scaling chooses."


@dataclass(frozen=True)
class Permission:
    """A statement of a function's policy, and why its resources have a `*` where they do."""

    statement: iam.PolicyStatement
    wildcard_reason: str = ""


def describe_pools() -> Permission:
    return Permission(
        iam.PolicyStatement(sid="DescribePools", actions=list(DESCRIBING), resources=["*"]),
        "AWS has no resource to name for Describe* of Auto Scaling and EC2, nor for X-Ray's Put*.",
    )


def describe_for_drains() -> Permission:
    return Permission(
        iam.PolicyStatement(sid="DescribePools", actions=list(DESCRIBING_DRAINS), resources=["*"]),
        "AWS has no resource to name for Describe* of Auto Scaling and EC2, nor for X-Ray's Put*.",
    )


def describe_refreshes() -> Permission:
    return Permission(
        iam.PolicyStatement(
            sid="DescribeRefreshes", actions=["autoscaling:DescribeInstanceRefreshes"], resources=["*"]
        ),
        "AWS has no resource to name for Describe* of Auto Scaling.",
    )


def deregister_targets(scope: Construct, cluster: ClusterEntry) -> Permission:
    stack = Stack.of(scope)
    groups = f"arn:{stack.partition}:elasticloadbalancing:{cluster.region}:{stack.account}:targetgroup/*/*"
    return Permission(
        iam.PolicyStatement(
            sid="DeregisterTargets", actions=["elasticloadbalancing:DeregisterTargets"], resources=[groups]
        ),
        "Which target groups are attached to the pools' groups is known at run time only.",
    )


def use_drain_ledger(table_arn: str) -> Permission:
    actions = ["BatchGetItem", "GetItem", "PutItem", "Query", "UpdateItem"]
    return Permission(
        iam.PolicyStatement(sid="UseLedger", actions=[f"dynamodb:{name}" for name in actions], resources=[table_arn])
    )


def look_after_drains(scope: Construct, cluster: ClusterEntry, table_arn: str, queue_arn: str) -> list[Permission]:
    """Tick's share of interruptions: changes enqueued when they are due, and detached survivors ended.

    A detached instance has lost its group's tag, so what is left to tell it by is the cluster's own tag, which EKS asks
    of every self-managed node: https://docs.aws.amazon.com/eks/latest/userguide/launch-workers.html
    """
    stack = Stack.of(scope)
    ledger = [f"dynamodb:{name}" for name in ("BatchGetItem", "DeleteItem")]
    survivors = iam.PolicyStatement(
        sid="EndSurvivors",
        actions=["ec2:TerminateInstances"],
        resources=[f"arn:{stack.partition}:ec2:{cluster.region}:{stack.account}:instance/*"],
        conditions={"StringEquals": {f"aws:ResourceTag/kubernetes.io/cluster/{cluster.name}": "owned"}},
    )
    return [
        Permission(iam.PolicyStatement(sid="LookAfterDrains", actions=ledger, resources=[table_arn])),
        Permission(iam.PolicyStatement(sid="EnqueueChanges", actions=["sqs:SendMessage"], resources=[queue_arn])),
        Permission(survivors, "Ids of instances are not known before; the cluster's own tag decides."),
    ]


def join_vpc() -> Permission:
    """What Lambda does in the function's role: https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html"""
    return Permission(
        iam.PolicyStatement(sid="JoinVpc", actions=list(JOINING_VPC), resources=["*"]),
        "Lambda makes network interfaces whose ids nobody knows before.",
    )


def change_groups(
    scope: Construct, cluster: ClusterEntry, actions: tuple[str, ...], *, sid: str = "ChangeGroups"
) -> list[Permission]:
    """`actions` on the pools' groups: by name, or by EKS's own tags where a managed node group named its group."""
    permissions = _change_named_groups(scope, cluster, actions, sid)
    if nodegroups := [pool.nodegroup for pool in cluster.pools if pool.nodegroup]:
        tags = {
            "aws:ResourceTag/eks:cluster-name": cluster.name,
            "aws:ResourceTag/eks:nodegroup-name": nodegroups,
        }
        statement = iam.PolicyStatement(
            sid=f"{sid}OfNodegroups",
            actions=list(actions),
            resources=[group_arn(scope, cluster.region, "eks-*")],
            conditions={"StringEquals": tags},
        )
        permissions.append(Permission(statement, "EKS names the group; its tags, which EKS guards, decide."))
    return permissions


def _change_named_groups(
    scope: Construct, cluster: ClusterEntry, actions: tuple[str, ...], sid: str
) -> list[Permission]:
    named = [name for pool in cluster.pools if (name := group_name(cluster, pool))]
    if not named:
        return []
    statement = iam.PolicyStatement(
        sid=sid, actions=list(actions), resources=[group_arn(scope, cluster.region, name) for name in named]
    )
    return [Permission(statement, GROUP_ID)]


def remove_members(scope: Construct, cluster: ClusterEntry) -> list[Permission]:
    """Ending members of the pools' groups, and MinSize of those that no managed node group owns."""
    return [
        *change_groups(scope, cluster, REMOVING, sid="RemoveMembers"),
        *_change_named_groups(scope, cluster, LOWERING, "LowerMinSize"),
    ]


def change_nodegroups(scope: Construct, cluster: ClusterEntry) -> list[Permission]:
    """MinSize of managed node groups."""
    resources = _nodegroup_arns(scope, cluster)
    if not resources:
        return []
    statement = iam.PolicyStatement(sid="ChangeNodegroups", actions=["eks:UpdateNodegroupConfig"], resources=resources)
    return [Permission(statement, NODEGROUP_ID)]


def _nodegroup_arns(scope: Construct, cluster: ClusterEntry) -> list[str]:
    stack = Stack.of(scope)
    prefix = f"arn:{stack.partition}:eks:{cluster.region}:{stack.account}:nodegroup/{cluster.name}"
    return [f"{prefix}/{pool.nodegroup}/*" for pool in cluster.pools if pool.nodegroup]


def group_arn(scope: Construct, region: str, name: str) -> str:
    """The ARN of a group has an id in it that Auto Scaling chooses."""
    stack = Stack.of(scope)
    return f"arn:{stack.partition}:autoscaling:{region}:{stack.account}:autoScalingGroup:*:autoScalingGroupName/{name}"


def read_cluster(scope: Construct, cluster: ClusterEntry) -> list[Permission]:
    """The cluster's endpoint, and the groups of its managed node groups where a pool is one."""
    stack = Stack.of(scope)
    eks = f"arn:{stack.partition}:eks:{cluster.region}:{stack.account}:"
    describe = iam.PolicyStatement(
        sid="ReadCluster", actions=["eks:DescribeCluster"], resources=[f"{eks}cluster/{cluster.name}"]
    )
    permissions = [Permission(describe)]
    if nodegroups := _nodegroup_arns(scope, cluster):
        statement = iam.PolicyStatement(sid="ReadNodegroups", actions=["eks:DescribeNodegroup"], resources=nodegroups)
        permissions.append(Permission(statement, NODEGROUP_ID))
    return permissions


def use_ledger(table_arn: str) -> Permission:
    actions = ["dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"]
    return Permission(iam.PolicyStatement(sid="UseLedger", actions=actions, resources=[table_arn]))


def publish_outcomes(bus_arn: str) -> Permission:
    return Permission(iam.PolicyStatement(sid="PublishOutcomes", actions=["events:PutEvents"], resources=[bus_arn]))
