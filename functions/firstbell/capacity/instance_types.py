"""The facts of an EC2 instance type that capacity is computed from (ec2:DescribeInstanceTypes)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
"""EC2's name -> Kubernetes' (`kubernetes.io/arch`). Types with neither (Macs) run no Linux node."""


@dataclass(frozen=True, slots=True)
class InstanceTypeFacts:
    """One instance type, as EC2 describes it."""

    name: str
    vcpus: int
    memory_mib: int
    enis: int
    """Network interfaces of the default network card, the only one that the VPC CNI takes addresses from."""
    ipv4_per_eni: int
    nitro: bool
    """Nitro hypervisor or bare metal: what prefix delegation and IPv6 need."""
    architecture: str
    """amd64 or arm64; empty where no Linux node can run."""
    gpus: int = 0
    """NVIDIA devices, as `nvidia.com/gpu` counts them."""
    volume_attachments: int | None = None
    """MaximumEbsAttachments, root volume included; None where EC2 does not say."""
    shared_attachments: bool = True
    """Whether network interfaces take of the same limit."""


def facts_from_description(description: Mapping[str, Any]) -> InstanceTypeFacts:
    """One entry of `InstanceTypes`. Raises KeyError where EC2 leaves out what every type has."""
    network = description["NetworkInfo"]
    default_card = network.get("DefaultNetworkCardIndex", 0)
    ebs = description.get("EbsInfo", {})
    nitro = description.get("Hypervisor") == "nitro" or description.get("BareMetal", False)
    supported = description["ProcessorInfo"]["SupportedArchitectures"]
    return InstanceTypeFacts(
        name=description["InstanceType"],
        vcpus=description["VCpuInfo"]["DefaultVCpus"],
        memory_mib=description["MemoryInfo"]["SizeInMiB"],
        enis=next(
            card["MaximumNetworkInterfaces"]
            for card in network["NetworkCards"]
            if card["NetworkCardIndex"] == default_card
        ),
        ipv4_per_eni=network["Ipv4AddressesPerInterface"],
        nitro=nitro,
        architecture=next((_ARCHITECTURES[name] for name in supported if name in _ARCHITECTURES), ""),
        gpus=sum(
            gpu.get("LogicalGpuCount", gpu["Count"])
            for gpu in description.get("GpuInfo", {}).get("Gpus", ())
            if gpu["Manufacturer"] == "NVIDIA"
        ),
        volume_attachments=ebs.get("MaximumEbsAttachments"),
        # The API calls Xen's limit shared, but there interfaces take none of it:
        # kubernetes-sigs/aws-ebs-csi-driver pkg/cloud/limits/volume_limits.go
        shared_attachments=nitro and ebs.get("AttachmentLimitType", "shared") == "shared",
    )


def node_labels(pool_labels: Mapping[str, str], facts: InstanceTypeFacts) -> dict[str, str]:
    """Labels of a node to come: what kubelet and the cloud provider set of themselves, and the pool's own."""
    return {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": facts.architecture,
        "node.kubernetes.io/instance-type": facts.name,
        **pool_labels,
    }
