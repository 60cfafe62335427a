"""The EKS cluster that functions find by DescribeCluster.

Missing upstream: without Docker a cluster has no API server, no CA and an endpoint where nothing listens. Here the
configured cluster exists from the start and answers with the local cloud's real API server. Access entries are
upstream's own.

https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeCluster.html
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from localcloud.aws.upstream import replace, require
from localcloud.aws.wiring import Wiring

KUBERNETES_VERSION = "1.36"


def install(wiring: Wiring) -> None:
    """Register the configured cluster; UpstreamChanged where ministack keeps clusters differently."""
    from ministack.core.responses import request_scope
    from ministack.services import eks

    require(eks, "_clusters", "_access_entries", "_cluster_arn", "_now")
    with request_scope(wiring.account, wiring.region):
        eks._clusters[wiring.cluster] = cluster_record(wiring, arn=eks._cluster_arn(wiring.cluster), now=eks._now())

    def describe_cluster(name: str) -> Any:
        cluster = eks._clusters.get(name)
        if name == wiring.cluster and cluster is not None:
            cluster.update(readiness(wiring.kubernetes_ca_file))
        return upstream_describe(name)

    upstream_describe = replace(eks, "_describe_cluster", "name", describe_cluster)


def readiness(ca_file: Path) -> dict[str, Any]:
    """ACTIVE with its CA once the control plane has made one, CREATING without before."""
    if not ca_file.exists():
        return {"status": "CREATING", "certificateAuthority": {}}
    return {
        "status": "ACTIVE",
        "certificateAuthority": {"data": base64.b64encode(ca_file.read_bytes()).decode()},
    }


def cluster_record(wiring: Wiring, *, arn: str, now: float) -> dict[str, Any]:
    """The cluster as DescribeCluster shows it, in ministack's own shape (`_`-prefixed keys are not shown)."""
    return {
        "name": wiring.cluster,
        "arn": arn,
        "createdAt": now,
        "version": KUBERNETES_VERSION,
        "endpoint": wiring.kubernetes_endpoint,
        "roleArn": f"arn:aws:iam::{wiring.account}:role/{wiring.cluster}-cluster",
        "resourcesVpcConfig": {"endpointPublicAccess": True, "endpointPrivateAccess": False, "subnetIds": []},
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16", "ipFamily": "ipv4"},
        "logging": {"clusterLogging": []},
        "identity": {"oidc": {"issuer": f"https://oidc.eks.{wiring.region}.amazonaws.com/id/LOCAL"}},
        **readiness(wiring.kubernetes_ca_file),
        "platformVersion": "eks.1",
        "tags": {},
        "encryptionConfig": [],
        "accessConfig": {"authenticationMode": "API"},
        "_creator_arn": None,
        "_auth_token": "",
        "_docker_id": None,
        "_port": None,
    }
