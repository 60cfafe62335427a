"""The operator's file, from the top."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from infra.operator_file.base import Entry
from infra.operator_file.fields import (
    CertificateAuthority,
    Cidr,
    ClusterName,
    Email,
    Endpoint,
    Namespace,
    PoolName,
    PortalName,
    Principal,
    Region,
    SecurityGroupId,
    Source,
    SubnetId,
    TopicArn,
    VpcId,
)
from infra.operator_file.pools import PoolEntry


class PortalEntry(Entry):
    """A program that may signal, and how much."""

    name: Annotated[PortalName, Field(description="what reports call it")]
    principal: Annotated[Principal, Field(description="who it is on AWS")]
    source: Annotated[Source, Field(description="the source of its events")]
    max_pods: Annotated[
        int, Field(ge=1, le=100000, description="most pods that its live reservations may ask for together")
    ]
    max_reserved_hours: Annotated[float, Field(gt=0, le=336, description="longest life of one of its reservations")]


class Notify(Entry):
    """Where alarms go."""

    email: Annotated[Email | None, Field(description="an address; it has to confirm once")] = None
    topic: Annotated[TopicArn | None, Field(description="an SNS topic that you have")] = None


class PrivateEndpoint(Entry):
    """Where functions stand to reach a cluster whose API endpoint is private."""

    vpc: Annotated[VpcId, Field(description="the cluster's VPC")]
    subnets: Annotated[list[SubnetId], Field(min_length=1, description="subnets with a way to AWS's endpoints")]
    security_groups: Annotated[
        list[SecurityGroupId], Field(min_length=1, description="security groups that the API endpoint lets in")
    ]


class ApiServer(Entry):
    """What a node needs to join: three answers of `aws eks describe-cluster`. Needed where a pool is made here."""

    endpoint: Annotated[Endpoint, Field(description="cluster.endpoint")]
    certificate_authority: Annotated[CertificateAuthority, Field(description="cluster.certificateAuthority.data")]
    service_cidr: Annotated[Cidr, Field(description="cluster.kubernetesNetworkConfig.serviceIpv4Cidr (or Ipv6)")]


class ClusterEntry(Entry):
    """An EKS cluster. Each is a stack of its own."""

    name: Annotated[ClusterName, Field(description="the EKS cluster's name")]
    region: Annotated[Region, Field(description="its AWS region")]
    default_pool: Annotated[PoolName, Field(description="pool of signals that name none")]
    pools: Annotated[
        list[PoolEntry],
        Field(min_length=1, description="a pod belongs to the first that it selects and tolerates"),
    ]
    portals: list[PortalEntry] = Field(default=[], description="who may signal; nobody else can")
    drill_sources: list[Principal] = Field(default=[], description="who may send interruption drills")
    notify: Annotated[Notify | None, Field(description="where alarms go; absent = a topic without subscribers")] = None
    private_endpoint: Annotated[
        PrivateEndpoint | None, Field(description="absent = the functions reach the public endpoint")
    ] = None
    api_server: Annotated[ApiServer | None, Field(description="needed where a pool has create")] = None
    system_namespaces: list[Namespace] = Field(
        default=["kube-system"], description="namespaces whose pods are nobody's work"
    )

    def pool(self, name: str) -> PoolEntry:
        """Raises StopIteration for a name that no pool has."""
        return next(pool for pool in self.pools if pool.name == name)


class OperatorFile(Entry):
    """firstbell.yaml."""

    clusters: Annotated[list[ClusterEntry], Field(min_length=1, description="clusters to serve")]
    regions: dict[Region, ClusterName] = Field(
        default={}, description="region -> cluster of signals that name none; absent = each region's only cluster"
    )

    def cluster(self, name: str) -> ClusterEntry | None:
        return next((cluster for cluster in self.clusters if cluster.name == name), None)

    def cluster_by_region(self) -> dict[str, str]:
        """Every listed region -> the cluster that serves it."""
        return self.regions or {cluster.region: cluster.name for cluster in self.clusters}
