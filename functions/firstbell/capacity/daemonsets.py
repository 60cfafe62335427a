"""What DaemonSets take of a node that does not exist yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.capacity.affinity import matches
from firstbell.capacity.resources import Resources
from firstbell.capacity.scheduling import Taint, selects, tolerated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from firstbell.capacity.cluster_view import DaemonSet


def daemonset_overhead(
    daemonsets: Iterable[DaemonSet], labels: Mapping[str, str], taints: Sequence[Taint]
) -> Resources:
    """Requests and pod count of the DaemonSets that land on a node with `labels` and `taints`.

    Host-network pods count as well: kubelet's maxPods counts every pod. `labels` are the pool's own and those that
    kubelet sets (`instance_types.node_labels`), because EKS add-ons select by operating system and architecture.
    """
    landing = [one for one in daemonsets if lands(one, labels, taints)]
    return sum((one.requests for one in landing), Resources())


def lands(daemonset: DaemonSet, labels: Mapping[str, str], taints: Sequence[Taint]) -> bool:
    """`NodeShouldRunDaemonPod` (pkg/controller/daemon/daemon_controller.go), by selector, affinity and taints."""
    return (
        selects(daemonset.node_selector, labels)
        and matches(daemonset.affinity, labels)
        and tolerated(taints, daemonset.tolerations)
    )
