"""A cluster in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from firstbell.capacity.scheduling import Taint
from firstbell.cluster import cordons
from firstbell.cluster.evictions import Eviction, EvictionResult
from firstbell.cluster.kubernetes import KubernetesCluster
from firstbell.cluster.nodes import annotations_patch
from firstbell.errors import Conflict, NotFound
from tests.fakes.faults import Call, Faults

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from firstbell.capacity.budgets import Budget
    from firstbell.capacity.cluster_view import DaemonSet, Node, Pod
    from firstbell.cluster.access import Verb
    from firstbell.cluster.image_pulls import ImagePull
    from firstbell.cluster.volumes import VolumeAttachment

CORDONED = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class FakeCluster(KubernetesCluster):
    """Nodes and pods that tests put there and calls change, as the API server would: every write to a node gives it a
    new resourceVersion, a patch with an older one is a Conflict, an evicted pod is gone at once unless it lingers."""

    def __init__(
        self,
        nodes: Iterable[Node] = (),
        pods: Iterable[Pod] = (),
        *,
        clock: Callable[[], float] = lambda: 0.0,
        faults: Faults | None = None,
    ) -> None:
        self.clock = clock
        self.faults = faults or Faults()
        self.calls: list[Call] = []
        self.node_by_name: dict[str, Node] = {}
        self.pod_by_uid: dict[str, Pod] = {pod.uid: pod for pod in pods}
        self.daemonset_list: list[DaemonSet] = []
        self.budget_list: list[Budget] = []
        self.attach_limit_by_node: dict[str, int] = {}
        self.attachments: dict[str, list[VolumeAttachment]] = {}
        """Node name -> its VolumeAttachments."""
        self.volume_zones: dict[str, tuple[str, ...]] = {}
        """Pod UID -> zones that its volumes allow."""
        self.pulls: dict[str, ImagePull] = {}
        self.denied: set[Verb] = set()
        self.budget_blocked: set[str] = set()
        """UIDs that a budget protects from eviction (not from deletion)."""
        self.results: dict[str, Eviction] = {}
        """UID -> what its eviction answers, without effect."""
        self.lingering: set[str] = set()
        """UIDs that stay, terminating, until `finish`."""
        self.controls_nodes = False
        """Whether a cordoned node gets the node controller's taint, which outlives the cordon for a moment."""
        self._version = 0
        for node in nodes:
            self.add_node(node)

    # what a test does to the cluster

    def add_node(self, node: Node) -> Node:
        """Put a node there, or replace the one of its name; it gets a new resourceVersion."""
        self._version += 1
        self.node_by_name[node.name] = replace(node, resource_version=str(self._version))
        return self.node_by_name[node.name]

    def remove_node(self, name: str) -> None:
        """The node and its pods are gone."""
        del self.node_by_name[name]
        for pod in [pod for pod in self.pod_by_uid.values() if pod.node_name == name]:
            del self.pod_by_uid[pod.uid]

    def add_pod(self, pod: Pod) -> Pod:
        self.pod_by_uid[pod.uid] = pod
        return pod

    def bind(self, uid: str, node_name: str, *, ready: bool = True) -> None:
        now = self.clock()
        self.pod_by_uid[uid] = replace(
            self.pod_by_uid[uid], node_name=node_name, scheduled_at=now, ready_at=now if ready else 0.0
        )

    def finish(self, uid: str) -> None:
        """The pod is gone."""
        self.pod_by_uid.pop(uid, None)

    # what the code under test reads

    def nodes(self, label_selector: str = "") -> list[Node]:
        with self._called("nodes", label_selector):
            wanted = dict(term.split("=", 1) for term in label_selector.split(",") if term)
            return [node for node in self.node_by_name.values() if wanted.items() <= dict(node.labels).items()]

    def node(self, name: str) -> Node:
        with self._called("node", name):
            return self._node(name)

    def nodes_of_instances(self, instance_ids: Collection[str]) -> dict[str, Node]:
        with self._called("nodes_of_instances", tuple(instance_ids)):
            return {n.instance_id: n for n in self.node_by_name.values() if n.instance_id in instance_ids}

    def attach_limits(self) -> dict[str, int]:
        with self._called("attach_limits"):
            return dict(self.attach_limit_by_node)

    def pods(self) -> list[Pod]:
        with self._called("pods"):
            return [pod for pod in self.pod_by_uid.values() if not pod.finished]

    def pending_pods(self) -> list[Pod]:
        with self._called("pending_pods"):
            return [pod for pod in self.pod_by_uid.values() if not pod.bound and not pod.finished]

    def pods_on_node(self, node_name: str) -> list[Pod]:
        with self._called("pods_on_node", node_name):
            return [pod for pod in self.pod_by_uid.values() if pod.node_name == node_name]

    def daemonsets(self) -> list[DaemonSet]:
        with self._called("daemonsets"):
            return list(self.daemonset_list)

    def budgets(self) -> list[Budget]:
        with self._called("budgets"):
            return list(self.budget_list)

    def with_bound_volumes(self, pods: Sequence[Pod]) -> list[Pod]:
        """Counts as a call only where a pod has a claim, as the real one does."""
        if not any(pod.claims for pod in pods):
            return list(pods)
        with self._called("with_bound_volumes", tuple(pod.uid for pod in pods)):
            return [replace(pod, zones=self.volume_zones.get(pod.uid, pod.zones)) for pod in pods]

    def volume_attachments(self, node_name: str) -> list[VolumeAttachment]:
        with self._called("volume_attachments", node_name):
            return list(self.attachments.get(node_name, ()))

    def image_pulls(self, namespace: str, pod_uids: Collection[str]) -> dict[str, ImagePull]:
        with self._called("image_pulls", namespace, tuple(pod_uids)):
            return {uid: pull for uid, pull in self.pulls.items() if uid in pod_uids}

    def denied_verbs(self, verbs: Sequence[Verb]) -> list[Verb]:
        with self._called("denied_verbs", tuple(verbs)):
            return [verb for verb in verbs if verb in self.denied]

    # what the code under test does

    def annotate_node(self, name: str, annotations: Mapping[str, str | None], resource_version: str = "") -> Node:
        with self._called("annotate_node", name, dict(annotations), resource_version):
            return self._patched(name, annotations_patch(annotations, resource_version))

    def cordon(self, node: Node, mark: cordons.CordonMark) -> Node:
        with self._called("cordon", node.name, mark):
            return self._patched(node.name, cordons.cordon_patch(node, mark))

    def uncordon(self, node: Node, reason: cordons.MarkReason) -> Node:
        patch = cordons.uncordon_patch(node, reason)
        if patch is None:
            return node
        with self._called("uncordon", node.name, reason):
            return self._patched(node.name, patch)

    def taint_out_of_service(self, node: Node) -> Node:
        with self._called("taint_out_of_service", node.name):
            return self._patched(node.name, cordons.out_of_service_patch(node))

    def evict(self, pod: Pod, grace_seconds: int) -> Eviction:
        with self._called("evict", pod.uid, grace_seconds):
            if pod.uid in self.results:
                return self.results[pod.uid]
            if pod.uid in self.budget_blocked and pod.uid in self.pod_by_uid:
                return Eviction(EvictionResult.BUDGET, "the disruption budget allows none")
            return self._ended(pod.uid, grace_seconds)

    def delete_pod(self, pod: Pod, grace_seconds: int) -> Eviction:
        with self._called("delete_pod", pod.uid, grace_seconds):
            return self._ended(pod.uid, max(1, grace_seconds))

    def _called(self, name: str, *args: Any) -> Any:
        return self.faults.around(self.calls, name, *args)

    def _node(self, name: str) -> Node:
        if name not in self.node_by_name:
            raise NotFound(f"node {name}")
        return self.node_by_name[name]

    def _ended(self, uid: str, grace_seconds: int) -> Eviction:
        pod = self.pod_by_uid.get(uid)
        if pod is None:
            return Eviction(EvictionResult.GONE)
        if uid in self.lingering:
            ends = self.clock() + grace_seconds
            if pod.terminating:
                ends = min(ends, pod.deletion_at)
            self.pod_by_uid[uid] = replace(pod, terminating=True, deletion_at=ends)
        else:
            self.finish(uid)
        return Eviction(EvictionResult.ACCEPTED)

    def _patched(self, name: str, patch: Mapping[str, Any]) -> Node:
        """The node after a JSON merge patch of the kinds that `firstbell.cluster` writes."""
        node = self._node(name)
        metadata, spec = patch["metadata"], patch.get("spec", {})
        if metadata.get("resourceVersion", node.resource_version) != node.resource_version:
            raise Conflict(f"node {name} changed since it was read")
        changed = replace(
            node,
            annotations=_merged(node.annotations, metadata.get("annotations", {})),
            labels=_merged(node.labels, metadata.get("labels", {})),
        )
        if "unschedulable" in spec:
            changed = replace(changed, unschedulable=bool(spec["unschedulable"]))
        if "taints" in spec:
            changed = replace(changed, taints=tuple(_taint(raw) for raw in spec["taints"] or ()))
        if self.controls_nodes and changed.unschedulable and CORDONED not in changed.taints:
            changed = replace(changed, taints=(*changed.taints, CORDONED))
        return self.add_node(changed)


def _merged(values: Mapping[str, str], patch: Mapping[str, str | None]) -> dict[str, str]:
    return cast("dict[str, str]", {key: value for key, value in {**values, **patch}.items() if value is not None})


def _taint(raw: Mapping[str, str]) -> Taint:
    return Taint(raw["key"], raw.get("value", ""), raw["effect"], raw.get("timeAdded", ""))
