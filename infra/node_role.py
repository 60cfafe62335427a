"""The role of nodes that Firstbell makes, and their way into the cluster."""

from __future__ import annotations

from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.acknowledged import acknowledge

NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly")
"""https://docs.aws.amazon.com/eks/latest/userguide/create-node-role.html"""


class NodeRole(Construct):
    """Instance role, instance profile and the EC2_LINUX access entry that lets kubelets join."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str) -> None:
        super().__init__(scope, construct_id)
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            description=f"Firstbell: nodes of {cluster}",
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in NODE_POLICIES],
        )
        for name in NODE_POLICIES:
            acknowledge(
                role,
                f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{name}]",
                "EKS documents this policy for nodes and keeps it in step with the CNI and kubelet.",
            )
        self.profile = iam.CfnInstanceProfile(self, "Profile", roles=[role.role_name])
        eks.CfnAccessEntry(self, "AccessEntry", cluster_name=cluster, principal_arn=role.role_arn, type="EC2_LINUX")
