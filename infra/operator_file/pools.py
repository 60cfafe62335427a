"""Pools, as the operator's file says them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from infra.operator_file.base import Entry
from infra.operator_file.fields import (
    Ami,
    CpuQuantity,
    GroupName,
    HookName,
    InstanceType,
    LabelKey,
    LabelValue,
    LeadMinutes,
    MemoryQuantity,
    NodegroupName,
    PoolName,
    SecurityGroupId,
    SubnetId,
    TaintText,
)
from infra.operator_file.schedules import Idle


class PodRequest(Entry):
    """What one user pod of the pool asks for where a signal does not say."""

    cpu: Annotated[CpuQuantity, Field(description="guaranteed CPU (the pod's request, not its limit)")]
    memory: Annotated[MemoryQuantity, Field(description="guaranteed memory (the pod's request, not its limit)")]
    gpu: Annotated[int, Field(ge=0, le=16, description="GPUs")] = 0
    ephemeral_storage: Annotated[MemoryQuantity, Field(description="local disk")] = "0"


class PodToleration(Entry):
    """A toleration of the pool's user pods beyond those of its taints."""

    key: Annotated[str, Field(description="taint key; empty (with Exists) tolerates every taint")] = ""
    operator: Annotated[Literal["Equal", "Exists"], Field(description="how the value is compared")] = "Equal"
    value: Annotated[str, Field(description="taint value")] = ""
    effect: Annotated[
        Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"], Field(description="taint effect; empty = all")
    ] = ""


class PodNetworking(Entry):
    """How the VPC CNI gives addresses to the pool's pods; it decides how many pods a node takes."""

    prefix_delegation: Annotated[bool, Field(description="ENABLE_PREFIX_DELEGATION of the VPC CNI")] = False
    custom_networking: Annotated[bool, Field(description="AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG of the VPC CNI")] = False
    reserved_enis: Annotated[int, Field(ge=0, le=15, description="network interfaces that pods do not get")] = 0
    ipv6: Annotated[bool, Field(description="the cluster gives its pods IPv6 addresses")] = False
    max_pods: Annotated[
        int | None, Field(ge=1, le=1000, description="kubelet's maxPods where you set it; wins over every rule")
    ] = None


class ScheduledChange(Entry):
    """What to do about EC2's scheduled maintenance."""

    before_minutes: Annotated[int, Field(ge=0, le=10080, description="how long ahead the node is drained")] = 60


class Interruption(Entry):
    """What to do when EC2 takes a node away."""

    spot: Annotated[Literal["observe", "cordon", "drain"], Field(description="at a Spot interruption warning")] = (
        "drain"
    )
    rebalance: Annotated[
        Literal["observe", "cordon", "drain"], Field(description="at a rebalance recommendation, which is only a risk")
    ] = "observe"
    rebalance_ttl_minutes: Annotated[
        int, Field(ge=1, le=1440, description="how long a cordon for a rebalance recommendation stays")
    ] = 30
    at_deadline: Annotated[
        Literal["force", "leave"], Field(description="what happens to pods that are still there at the deadline")
    ] = "force"
    scheduled_change: ScheduledChange = ScheduledChange()
    hook: Annotated[
        HookName, Field(description="the terminate lifecycle hook that is Firstbell's to answer; others are left alone")
    ] = "firstbell-drain"


class Instance(Entry):
    """An instance type that the group may launch."""

    type: Annotated[InstanceType, Field(description="EC2 instance type")]
    weight: Annotated[int, Field(ge=1, le=999, description="units of the group's capacity that one instance is")] = 1


class Volume(Entry):
    """The root volume (gp3, encrypted), for one unit of weight."""

    gib_per_unit: Annotated[int, Field(ge=20, le=16384, description="size in GiB")] = 80
    iops_per_unit: Annotated[int, Field(ge=3000, le=16000, description="input/output operations a second")] = 3000


class Create(Entry):
    """A group that Firstbell makes: launch templates, Auto Scaling group, tags."""

    subnets: Annotated[list[SubnetId], Field(min_length=1, description="subnets of the nodes; one a zone")]
    security_groups: Annotated[list[SecurityGroupId], Field(min_length=1, description="security groups of the nodes")]
    ami: Annotated[Ami, Field(description="EKS AL2023 image; a parameter is looked up at each deployment")]
    instances: Annotated[list[Instance], Field(min_length=1, max_length=40, description="types, preferred first")]
    min_size: Annotated[int, Field(ge=0, le=10000, description="least capacity, in units of weight")] = 0
    max_size: Annotated[int, Field(ge=1, le=10000, description="most capacity, in units of weight")]
    on_demand_base: Annotated[int, Field(ge=0, le=10000, description="units of a Spot pool that are on demand")] = 0
    volume: Volume = Volume()


class PoolEntry(Entry):
    """A pool: one Auto Scaling group, and how pods come to it and fit on it."""

    name: Annotated[PoolName, Field(description="what signals call it")]
    asg: Annotated[GroupName | None, Field(description="the Auto Scaling group, by name")] = None
    nodegroup: Annotated[NodegroupName | None, Field(description="the managed node group, by name")] = None
    create: Annotated[Create | None, Field(description="make the group")] = None
    pod: Annotated[PodRequest, Field(description="what one user pod asks for where a signal does not say")]
    labels: dict[LabelKey, LabelValue] = Field(
        default={}, description="labels that the nodes carry and the pods select"
    )
    taints: list[TaintText] = Field(default=[], description="taints that nodes register with and user pods tolerate")
    tolerations: list[PodToleration] = Field(default=[], description="what user pods tolerate besides the taints")
    mode: Annotated[
        Literal["act", "observe"], Field(description="observe: everything is planned and reported, nothing written")
    ] = "act"
    spot: Annotated[bool, Field(description="its instances are Spot instances")] = False
    stateful: Annotated[bool, Field(description="its pods lose work when they end, as notebooks do; never on Spot")] = (
        False
    )
    fallback: list[PoolName] = Field(default=[], description="pools that take over when this one cannot launch")
    lead_minutes: Annotated[
        LeadMinutes, Field(description="how long before a class nodes are asked for; auto = as measured")
    ] = "auto"
    preemptible: dict[LabelKey, LabelValue] = Field(
        default={}, description="labels of pods whose places are free, such as placeholders"
    )
    networking: PodNetworking = PodNetworking()
    interruption: Interruption = Interruption()
    idle: Annotated[Idle | None, Field(description="when its idle nodes go; absent = never")] = None
