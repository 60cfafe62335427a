"""EKS: where a cluster's API server is, how to be let in, and its managed node groups."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.cloud.refusals import Refused, translated
from firstbell.errors import NotFound, RetryLater

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_eks.type_defs import NodegroupScalingConfigTypeDef

    from firstbell.cloud.session import Clients

TOKEN_PREFIX = "k8s-aws-v1."  # noqa: S105 - the public prefix of every token
PRESIGNED_SECONDS = 60
"""The window in X-Amz-Expires. EKS itself honours the token for 15 minutes after its date.
https://github.com/kubernetes-sigs/aws-iam-authenticator#api-authorization-from-outside-a-cluster"""


@dataclass(frozen=True, slots=True)
class ClusterEndpoint:
    endpoint: str
    ca_data: str
    """PEM text."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A managed node group; sizes in instances."""

    name: str
    group: str
    """Name of its Auto Scaling group."""
    min_size: int
    max_size: int
    desired: int


class Eks:
    """Raises RetryLater, AccessDenied, NotFound (no such cluster or node group) and Refused."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._endpoints: dict[str, ClusterEndpoint] = {}
        self._groups: dict[tuple[str, str], str] = {}

    def describe(self, cluster: str) -> ClusterEndpoint:
        """Endpoint and CA; they stay for a cluster's life, so an environment asks once."""
        if cluster not in self._endpoints:
            with _absences("eks:DescribeCluster"):
                described = self._clients.eks.describe_cluster(name=cluster)["cluster"]
            self._endpoints[cluster] = ClusterEndpoint(
                endpoint=described["endpoint"],
                ca_data=base64.b64decode(described["certificateAuthority"]["data"]).decode(),
            )
        return self._endpoints[cluster]

    def token_source(self, cluster: str) -> Callable[[], str]:
        """Mints bearer tokens for the cluster: a presigned GetCallerIdentity that names it in a signed header, so that
        a token for one cluster opens no other. Signed locally, for the STS of the client's region and partition."""
        return lambda: self._presigned_token(cluster)

    def nodegroup(self, cluster: str, name: str) -> NodeGroup:
        with _absences("eks:DescribeNodegroup"):
            described = self._clients.eks.describe_nodegroup(clusterName=cluster, nodegroupName=name)["nodegroup"]
        groups = described.get("resources", {}).get("autoScalingGroups") or [{}]
        scaling = described.get("scalingConfig", {})
        return NodeGroup(
            name=name,
            group=groups[0].get("name", ""),
            min_size=scaling.get("minSize", 0),
            max_size=scaling.get("maxSize", 0),
            desired=scaling.get("desiredSize", 0),
        )

    def group_of_nodegroup(self, cluster: str, name: str) -> str:
        """Name of its Auto Scaling group, which a node group keeps for life. Raises NotFound while it has none."""
        key = (cluster, name)
        if key not in self._groups:
            group = self.nodegroup(cluster, name).group
            if not group:
                raise NotFound(f"node group {name} of cluster {cluster} has no Auto Scaling group yet")
            self._groups[key] = group
        return self._groups[key]

    def update_nodegroup_min_size(self, cluster: str, name: str, instances: int, desired: int | None = None) -> None:
        """MinSize of a managed node group goes through EKS, which would undo a change of the group itself. EKS applies
        it later. Raises RetryLater while another update runs.

        EKS refuses a minimum above desired (Auto Scaling would raise desired), so `desired` goes along where it is.
        """
        scaling: NodegroupScalingConfigTypeDef = {"minSize": instances}
        if desired is not None:
            scaling["desiredSize"] = desired
        with _absences("eks:UpdateNodegroupConfig"):
            self._clients.eks.update_nodegroup_config(clusterName=cluster, nodegroupName=name, scalingConfig=scaling)

    def _presigned_token(self, cluster: str) -> str:
        from botocore.signers import RequestSigner

        sts = self._clients.sts
        with translated("sts:GetCallerIdentity"):
            signer = RequestSigner(
                sts.meta.service_model.service_id,
                sts.meta.region_name,
                "sts",
                "v4",
                self._clients.credentials,
                sts.meta.events,
            )
            url = signer.generate_presigned_url(
                {
                    "method": "GET",
                    "url": f"{sts.meta.endpoint_url}/?Action=GetCallerIdentity&Version=2011-06-15",
                    "body": {},
                    "headers": {"x-k8s-aws-id": cluster},
                    "context": {},
                },
                region_name=sts.meta.region_name,
                expires_in=PRESIGNED_SECONDS,
                operation_name="",
            )
        return TOKEN_PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


@contextmanager
def _absences(operation: str) -> Iterator[None]:
    try:
        with translated(operation):
            yield
    except Refused as error:
        if error.code == "ResourceNotFoundException":
            raise NotFound(str(error)) from error
        if error.code == "ResourceInUseException":
            raise RetryLater(str(error)) from error
        raise
