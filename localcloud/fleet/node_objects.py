"""The Node and CSINode that a kubelet and the EBS driver on EKS register, pure.

Names and labels: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html and
https://kubernetes.io/docs/reference/labels-annotations-taints/
"""

from __future__ import annotations

from typing import Any

from localcloud.fleet.sizes import NodeSize, node_size
from localcloud.fleet.state import Machine

EBS_DRIVER = "ebs.csi.aws.com"


def node_name(private_ip: str, region: str) -> str:
    """The instance's private DNS name (IP name), which is its node's name too.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-naming.html
    """
    domain = "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"
    return f"ip-{private_ip.replace('.', '-')}.{domain}"


def machine_size(machine: Machine) -> NodeSize:
    size = node_size(machine.instance_type)
    return size if machine.node_config.max_pods is None else size.with_max_pods(machine.node_config.max_pods)


def node_object(machine: Machine, region: str, kubelet: str) -> dict[str, Any]:
    """The Node, sized and labelled, and not ready until its kubelet says so."""
    size = machine_size(machine)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.node_name,
            "labels": {**_labels(machine, size, region), **machine.node_config.labels},
            "annotations": {
                "alpha.kubernetes.io/provided-node-ip": machine.private_ip,
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": {
            "providerID": f"aws:///{machine.zone}/{machine.instance_id}",
            "taints": [
                {"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in machine.node_config.taints
            ],
        },
        "status": {
            "capacity": dict(size.capacity),
            "allocatable": dict(size.allocatable),
            "addresses": [
                {"type": "InternalIP", "address": machine.private_ip},
                {"type": "InternalDNS", "address": machine.node_name},
                {"type": "Hostname", "address": machine.node_name},
            ],
            "nodeInfo": {
                "architecture": size.architecture,
                "operatingSystem": "linux",
                "osImage": size.os_image,
                "kubeletVersion": kubelet,
                "kubeProxyVersion": kubelet,
                "containerRuntimeVersion": "containerd://2.1.5",
                "kernelVersion": "6.12.0",
                "machineID": machine.instance_id,
                "systemUUID": machine.instance_id,
                "bootID": machine.instance_id,
            },
        },
    }


def _labels(machine: Machine, size: NodeSize, region: str) -> dict[str, str]:
    return {
        "beta.kubernetes.io/arch": size.architecture,
        "beta.kubernetes.io/instance-type": machine.instance_type,
        "beta.kubernetes.io/os": "linux",
        "eks.amazonaws.com/capacityType": "SPOT" if machine.spot else "ON_DEMAND",
        "failure-domain.beta.kubernetes.io/region": region,
        "failure-domain.beta.kubernetes.io/zone": machine.zone,
        "kubernetes.io/arch": size.architecture,
        "kubernetes.io/hostname": machine.node_name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine.instance_type,
        "topology.ebs.csi.aws.com/zone": machine.zone,
        "topology.kubernetes.io/region": region,
        "topology.kubernetes.io/zone": machine.zone,
    }


def csi_node_object(machine: Machine, node_uid: str) -> dict[str, Any]:
    """The CSINode with the EBS driver's limit of attachments, where one was recorded for the type.

    https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/faq.md
    """
    limit = machine_size(machine).ebs_attach_limit
    driver: dict[str, Any] = {
        "name": EBS_DRIVER,
        "nodeID": machine.instance_id,
        "topologyKeys": ["topology.ebs.csi.aws.com/zone"],
    }
    if limit is not None:
        driver["allocatable"] = {"count": limit}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": machine.node_name,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": machine.node_name, "uid": node_uid}],
        },
        "spec": {"drivers": [driver]},
    }
