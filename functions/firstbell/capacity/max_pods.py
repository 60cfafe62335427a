"""How many pods kubelet takes on a node, by the addresses that the VPC CNI can give out there.

Sources: awslabs/amazon-eks-ami nodeadm/internal/kubelet/eni_max_pods.go (the rule of AL2023) and the former
max-pods-calculator.sh (prefixes, custom networking, caps); EKS user guide, "Amazon EKS recommended maximum Pods";
aws/amazon-vpc-cni-k8s `IsPrefixDelegationSupported`; karpenter-provider-aws `ENILimitedPods` (reserved ENIs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firstbell.capacity.instance_types import InstanceTypeFacts
    from firstbell.capacity.pools import Networking

ADDRESSES_PER_PREFIX = 16
HOST_NETWORK_PODS = 2
"""aws-node and kube-proxy, which take no address."""


def eni_max_pods(facts: InstanceTypeFacts, networking: Networking) -> int:
    """What the addresses allow, before any cap: interfaces x (IPv4 addresses per interface - 1) + 2.

    Custom networking gives no pod an address of the primary interface. A node without an interface for pods takes
    none, not the two of the rule: a user's pod would wait for an address for ever.
    """
    interfaces = facts.enis - networking.reserved_enis - networking.custom_networking
    if interfaces <= 0:
        return 0
    addresses = facts.ipv4_per_eni - 1
    if prefixes(facts, networking):
        addresses *= ADDRESSES_PER_PREFIX
    return interfaces * addresses + HOST_NETWORK_PODS


def max_pods(facts: InstanceTypeFacts, networking: Networking, *, managed: bool = True) -> int:
    """kubelet's maxPods: the operator's own figure, else the address rule under EKS's caps.

    `managed`: the pool is a managed node group, to which EKS hands the capped figure. A self-managed AL2023 node takes
    the bare rule, capped only where prefixes make it absurd.
    """
    if networking.max_pods is not None:
        return networking.max_pods
    allowed = eni_max_pods(facts, networking)
    if managed or prefixes(facts, networking):
        return min(allowed, recommended_cap(facts))
    return allowed


def recommended_cap(facts: InstanceTypeFacts) -> int:
    """110 pods up to 30 vCPU, 250 above (Kubernetes' scalability thresholds; EKS's own tests)."""
    return 110 if facts.vcpus <= 30 else 250


def prefixes(facts: InstanceTypeFacts, networking: Networking) -> bool:
    """Whether addresses come as /28 prefixes (IPv6: /80). Other than Nitro falls back to single addresses."""
    return facts.nitro and (networking.prefix_delegation or networking.ipv6)
