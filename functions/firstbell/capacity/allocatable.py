"""What a node of a type offers to pods, computed for the EKS AL2023 AMI: for types of which no node has been seen yet.

On the safe side: never above what a real node registers. Sources: awslabs/amazon-eks-ami
nodeadm/internal/kubelet/config.go (kube-reserved, eviction thresholds); karpenter-provider-aws
pkg/providers/instancetype/types.go (share of memory that the VM and the kernel keep); kubernetes
pkg/kubelet/cm/node_container_manager_linux.go (allocatable = capacity - reserved - eviction threshold);
kubernetes-sigs/aws-ebs-csi-driver pkg/driver/node.go `getVolumesLimit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.capacity.max_pods import eni_max_pods, max_pods, prefixes
from firstbell.capacity.pools import Networking
from firstbell.capacity.resources import Resources

if TYPE_CHECKING:
    from firstbell.capacity.instance_types import InstanceTypeFacts

MIB = 2**20
GIB = 2**30

VM_OVERHEAD_PER_MILLE = 75
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

_CPU_RESERVED_PER_10_000 = ((0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, None, 25))
"""(from, to, share) in millicores of the node."""


def estimated_allocatable(
    facts: InstanceTypeFacts,
    networking: Networking,
    *,
    managed: bool = True,
    root_volume_gib: int = DEFAULT_ROOT_VOLUME_GIB,
) -> Resources:
    """Allocatable of a node to come. See `max_pods` for `managed`."""
    return Resources(
        cpu_millicores=facts.vcpus * 1000 - reserved_cpu_millicores(facts.vcpus),
        memory_bytes=max(0, _memory_mib(facts, networking, managed)) * MIB,
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
    """255 MiB and 11 MiB for each pod that the address rule allows."""
    return 255 + 11 * pods


def _memory_mib(facts: InstanceTypeFacts, networking: Networking, managed: bool) -> int:
    seen_mib = facts.memory_mib - (CONTIGUOUS_MEMORY_MIB if facts.architecture == "arm64" else 0)
    capacity_mib = seen_mib * (1000 - VM_OVERHEAD_PER_MILLE) // 1000
    return capacity_mib - reserved_memory_mib(_reserving_pods(facts, networking, managed)) - EVICTION_MEMORY_MIB


def _reserving_pods(facts: InstanceTypeFacts, networking: Networking, managed: bool) -> int:
    """The pods that nodeadm reserves memory for: the plain rule's, whatever kubelet is told.

    Only a `maxPodsExpression` changes them. Whether a pool with prefixes has one cannot be seen from outside, so the
    larger figure counts.
    """
    plain = eni_max_pods(facts, Networking())
    return max(plain, max_pods(facts, networking, managed=managed)) if prefixes(facts, networking) else plain


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
