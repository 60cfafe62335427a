"""User data of an EKS AL2023 node: a NodeConfig for nodeadm.

https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/ and .../doc/examples/ (maxPodsExpression).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from infra.operator_file import parse_taint

if TYPE_CHECKING:
    from infra.operator_file import ClusterEntry, PoolEntry

BOUNDARY = "firstbell"


def user_data(cluster: ClusterEntry, pool: PoolEntry) -> str:
    """A multipart document with the pool's labels and registration taints."""
    return (
        f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{BOUNDARY}"\n\n'
        f"--{BOUNDARY}\nContent-Type: application/node.eks.aws\n\n---\n"
        f"{yaml.safe_dump(node_config(cluster, pool), sort_keys=False)}\n--{BOUNDARY}--\n"
    )


def node_config(cluster: ClusterEntry, pool: PoolEntry) -> dict[str, Any]:
    """Raises ValueError where the file lacks `api_server`, which its rules do not let pass with `create`."""
    if cluster.api_server is None:
        raise ValueError(f"{cluster.name} has no api_server")
    kubelet: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    if pool.taints:
        settings["registerWithTaints"] = [parse_taint(text) for text in pool.taints]
    if pool.networking.max_pods is not None:
        settings["maxPods"] = pool.networking.max_pods
    elif expression := max_pods_expression(pool):
        kubelet["maxPodsExpression"] = expression
    if settings:
        kubelet["config"] = settings
    if pool.labels:
        kubelet["flags"] = [f"--node-labels={','.join(f'{key}={value}' for key, value in pool.labels.items())}"]
    return {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": cluster.name,
                "apiServerEndpoint": cluster.api_server.endpoint,
                "certificateAuthority": cluster.api_server.certificate_authority,
                "cidr": cluster.api_server.service_cidr,
            },
            "kubelet": kubelet,
        },
    }


def max_pods_expression(pool: PoolEntry) -> str | None:
    """How nodeadm computes maxPods where its own rule does not hold, as firstbell.capacity.max_pods does."""
    withheld = pool.networking.reserved_enis + pool.networking.custom_networking
    return f"(default_enis - {withheld}) * (ips_per_eni - 1) + 2" if withheld else None
