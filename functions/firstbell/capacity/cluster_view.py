"""The parts of Kubernetes nodes and pods that capacity is computed from. `firstbell.cluster` fills them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firstbell.capacity.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firstbell.capacity.affinity import Terms
    from firstbell.capacity.scheduling import Taint, Toleration


@dataclass(frozen=True, slots=True)
class Node:
    """A registered node. Times are Unix seconds."""

    name: str
    instance_id: str
    """Last segment of spec.providerID; empty for a node that has none (it belongs to no pool of ours)."""
    instance_type: str
    zone: str
    ready: bool
    unschedulable: bool
    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    created_at: float = 0.0
    ready_at: float = 0.0
    """lastTransitionTime of the Ready condition while Ready; 0 otherwise."""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that is neither Succeeded nor Failed. Times are Unix seconds."""

    uid: str
    name: str
    namespace: str
    requests: Resources
    """Effective request as the scheduler counts it (init and sidecar containers, overhead, pod level), pods=1."""
    node_name: str = ""
    created_at: float = 0.0
    scheduled_at: float = 0.0
    ready_at: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """nodeSelector plus the single-valued `In` terms of a required node affinity."""
    tolerations: tuple[Toleration, ...] = ()
    owner_kind: str = ""
    owner_name: str = ""
    mirror: bool = False
    host_network: bool = False
    priority: int = 0
    terminating: bool = False
    zones: tuple[str, ...] = ()
    """Zones that its bound zonal volumes allow; empty = any."""
    finished: bool = False
    """Succeeded or Failed; lists for sizing leave such pods out, the list of one node's pods does not."""
    grace_seconds: int = 30
    """spec.terminationGracePeriodSeconds."""
    deletion_at: float = 0.0
    """metadata.deletionTimestamp, when the grace of a terminating pod runs out; 0 while it is not terminating."""
    claims: tuple[str, ...] = ()
    """Names of its PersistentVolumeClaims (a generic ephemeral volume's claim is `<pod>-<volume>`)."""
    safe_to_evict: bool | None = None
    """The annotation cluster-autoscaler.kubernetes.io/safe-to-evict; None where it is absent."""
    do_not_disrupt: bool = False
    """Whether it carries the annotation karpenter.sh/do-not-disrupt: "true"."""
    local_storage: bool = False
    """Whether it has an emptyDir on disk or a hostPath, whose data an eviction loses."""

    @property
    def bound(self) -> bool:
        return bool(self.node_name)


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """A DaemonSet's pod template: what it takes of every node that it lands on."""

    name: str
    requests: Resources
    """Effective request of one of its pods (`requests.pod_requests` of the template), pods=1."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Terms = ()
    tolerations: tuple[Toleration, ...] = ()
    host_network: bool = False
