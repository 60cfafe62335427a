"""What a node of a type offers to pods, computed for the EKS AL2023 AMI: for types of which no node has been seen yet.

On the safe side: never above what a real node registers. Sources: awslabs/amazon-eks-ami
nodeadm/internal/kubelet/config.go (kube-reserved, eviction thresholds); kubernetes
pkg/kubelet/cm/node_container_manager_linux.go (allocatable = capacity - reserved - eviction threshold);
kubernetes-sigs/aws-ebs-csi-driver pkg/driver/node.go `getVolumesLimit`; for memory see `kept_memory_mib`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.capacity.density import CannotPlace
from firstbell.capacity.max_pods import eni_max_pods, max_pods
from firstbell.capacity.pools import Networking
from firstbell.capacity.resources import Resources

if TYPE_CHECKING:
    from firstbell.capacity.instance_types import InstanceTypeFacts

MIB = 2**20
GIB = 2**30

CONTIGUOUS_MEMORY_MIB = 64
"""Set aside for contiguous allocations on Graviton; no pod sees it."""
EVICTION_MEMORY_MIB = 100
FILESYSTEM_MIB = 128
"""Partition table and XFS log of the AMI's root volume: 12 MiB (AL2) to 76 MiB (AL2023) on recorded nodes."""
DEFAULT_ROOT_VOLUME_GIB = 20
"""Of managed node groups, and of the AMI itself."""
DEFAULT_ATTACHMENTS = 27
"""Volumes and interfaces together, where EC2 does not say (Nitro, shared)."""

XEN_ATTACHMENTS = 39
"""What the CSI driver counts with on Xen, where EC2 says 40."""

_KEPT_PER_MILLE = ((64, 50), (24, 55), (16, 60), (8, 70), (0, 75))
"""(from GiB of the type, share of its memory)"""
_KEPT_AT_LEAST_MIB = 105
_KEPT_MORE_MIB = {
    "a1.medium": 245,
    "c5.large": 410,
    "c5d.large": 410,
    "c5n.large": 460,
    "m7a.medium": 315,
    "vt1.3xlarge": 2070,
    "vt1.6xlarge": 3010,
}
"""The measured types that keep more than the share."""

_CPU_RESERVED_PER_10_000 = ((0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, None, 25))
"""(from, to, share) in millicores of the node."""


def estimated_allocatable(
    facts: InstanceTypeFacts,
    networking: Networking,
    *,
    managed: bool = True,
    root_volume_gib: int = DEFAULT_ROOT_VOLUME_GIB,
) -> Resources:
    """Allocatable of a node to come. See `max_pods` for `managed`.

    Raises CannotPlace for a type that can be no node of such a pool at all.
    """
    if not facts.architecture:
        raise CannotPlace(f"{facts.name} runs no Linux node")
    if networking.ipv6 and not facts.nitro:
        raise CannotPlace(f"{facts.name} is not of the Nitro System, which IPv6 clusters need")
    return Resources(
        cpu_millicores=facts.vcpus * 1000 - reserved_cpu_millicores(facts.vcpus),
        memory_bytes=max(0, _memory_mib(facts)) * MIB,
        ephemeral_storage_bytes=_ephemeral_storage_bytes(root_volume_gib),
        pods=max_pods(facts, networking, managed=managed),
        gpus=facts.gpus,
        volumes=_volumes(facts),
    )


def reserved_cpu_millicores(vcpus: int) -> int:
    """6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest, each rounded down."""
    total = vcpus * 1000
    return sum(
        max(0, min(total, end if end is not None else total) - start) * share // 10_000
        for start, end, share in _CPU_RESERVED_PER_10_000
    )


def reserved_memory_mib(pods: int) -> int:
    """255 MiB, and 11 MiB a pod."""
    return 255 + 11 * pods


def kept_memory_mib(facts: InstanceTypeFacts) -> int:
    """Memory that EC2 names and kubelet never sees: the hypervisor's, the firmware's, the kernel's.

    Karpenter reckons with a flat 7.5 %, which no large type keeps. The shares here are the least that stay above what
    Karpenter measured on 656 types, Graviton's contiguous memory apart:
    https://github.com/aws/karpenter-provider-aws/blob/33450d8f82ded870ce65fbde3cec14dbb2c04f50/pkg/providers/instancetype/zz_generated.memory_overhead.go
    """
    contiguous_mib = CONTIGUOUS_MEMORY_MIB if facts.architecture == "arm64" else 0
    share = next(share for from_gib, share in _KEPT_PER_MILLE if facts.memory_mib >= from_gib * 1024)
    by_share_mib = -(-(facts.memory_mib - contiguous_mib) * share // 1000) + contiguous_mib
    return max(by_share_mib, _KEPT_AT_LEAST_MIB, _KEPT_MORE_MIB.get(facts.name, 0))


def _memory_mib(facts: InstanceTypeFacts) -> int:
    """The pods that memory is reserved for are the plain address rule's, whatever networking or kubelet's settings say.

    Only a node with a `maxPodsExpression` above that rule reserves more (nodeadm, withDefaultReservedResources).
    """
    reserved_mib = reserved_memory_mib(eni_max_pods(facts, Networking())) + EVICTION_MEMORY_MIB
    return facts.memory_mib - kept_memory_mib(facts) - reserved_mib


def _ephemeral_storage_bytes(root_volume_gib: int) -> int:
    capacity = root_volume_gib * GIB - FILESYSTEM_MIB * MIB
    return max(0, capacity * 9 // 10 - GIB)


def _volumes(facts: InstanceTypeFacts) -> int:
    """Attachments without the root volume and, where they share the limit, every further interface the CNI may add."""
    attachments = DEFAULT_ATTACHMENTS if facts.volume_attachments is None else facts.volume_attachments
    if not facts.nitro:
        attachments = min(attachments, XEN_ATTACHMENTS)
    interfaces = facts.enis - 1 if facts.shared_attachments else 0
    return max(1, attachments - 1 - interfaces)
