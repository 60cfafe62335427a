"""The school's platform as it stands before Firstbell: namespaces, DaemonSets, and the two groups of nodes."""

from __future__ import annotations

import base64
from typing import Any

from kubernetes import client

from demo.classroom import DEDICATED, NAMESPACE, POOL_LABEL

CLUSTER = "hub"
INSTANCE_TYPE = "m5.2xlarge"
MOST_NODES = 20
ZONE = "us-west-2a"
DAEMONS = {"aws-node": "50m", "kube-proxy": "100m"}
"""What runs on every EKS node, and the CPU that it asks for
(https://docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html)."""


def build_cluster(kubernetes: Any) -> None:
    """The hub's namespace and the DaemonSets that EKS puts on each node."""
    core: Any = client.CoreV1Api(kubernetes)
    apps: Any = client.AppsV1Api(kubernetes)
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    for name, cpu in DAEMONS.items():
        apps.create_namespaced_daemon_set("kube-system", daemon_set(name, cpu))


def daemon_set(name: str, cpu: str) -> dict[str, Any]:
    labels = {"k8s-app": name}
    container = {"name": name, "image": f"eks/{name}", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "hostNetwork": True,
                    "priorityClassName": "system-node-critical",
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [container],
                },
            },
        },
    }


def build_group(ec2: Any, autoscaling: Any, pool: str) -> None:
    """A launch template and an Auto Scaling group of one instance type, empty, as an operator makes them."""
    template = ec2.create_launch_template(
        LaunchTemplateName=pool,
        LaunchTemplateData={
            "ImageId": "ami-0eks0al20230x86064",
            "InstanceType": INSTANCE_TYPE,
            "UserData": base64.b64encode(node_config(pool).encode()).decode(),
        },
    )["LaunchTemplate"]
    autoscaling.create_auto_scaling_group(
        AutoScalingGroupName=pool,
        LaunchTemplate={"LaunchTemplateId": template["LaunchTemplateId"], "Version": "$Latest"},
        MinSize=0,
        MaxSize=MOST_NODES,
        AvailabilityZones=[ZONE],
        Tags=[
            {
                "ResourceId": pool,
                "ResourceType": "auto-scaling-group",
                "Key": f"kubernetes.io/cluster/{CLUSTER}",
                "Value": "owned",
                "PropagateAtLaunch": True,
            }
        ],
    )


def node_config(pool: str) -> str:
    """User data of an EKS AL2023 node (https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/)."""
    return f"""apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: {CLUSTER}
  kubelet:
    flags:
    - --node-labels={POOL_LABEL}={pool},hub.jupyter.org/node-purpose=user
    - --register-with-taints={DEDICATED}=user:NoSchedule
"""
