"""The door to the Kubernetes API: what the capabilities read of a cluster and do to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.cluster import access, budgets, cordons, daemonsets, evictions, image_pulls, nodes, pods, volumes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from firstbell.capacity.budgets import Budget
    from firstbell.capacity.cluster_view import DaemonSet, Node, Pod
    from firstbell.cluster.client import ApiServer


class KubernetesCluster:
    """One cluster. Lists raise ClusterUnreachable or AccessDenied and never come back short; single objects may also
    raise NotFound, patches Conflict."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api

    def nodes(self, label_selector: str = "") -> list[Node]:
        """All nodes, or those that the label selector matches. Their attach limits are `attach_limits`' to say."""
        return nodes.list_nodes(self._api, label_selector)

    def node(self, name: str) -> Node:
        """One node as it is now. Raises NotFound."""
        return nodes.read_node(self._api, name)

    def nodes_of_instances(self, instance_ids: Collection[str]) -> dict[str, Node]:
        """Instance id -> node, by providerID. An id that never joined, or belongs elsewhere, is absent."""
        return nodes.nodes_of_instances(self._api, instance_ids)

    def attach_limits(self) -> dict[str, int]:
        """Node name -> attachable volumes; `cluster.nodes.with_attach_limits` puts them into nodes."""
        return nodes.attach_limits(self._api)

    def pods(self) -> list[Pod]:
        """Every pod that is neither Succeeded nor Failed."""
        return pods.list_pods(self._api)

    def pending_pods(self) -> list[Pod]:
        """Pods that no node has been found for."""
        return pods.pending_pods(self._api)

    def pods_on_node(self, node_name: str) -> list[Pod]:
        """Every pod bound to the node, finished ones included."""
        return pods.pods_on_node(self._api, node_name)

    def daemonsets(self) -> list[DaemonSet]:
        return daemonsets.list_daemonsets(self._api)

    def budgets(self) -> list[Budget]:
        """Every PodDisruptionBudget that selects pods."""
        return budgets.list_budgets(self._api)

    def with_bound_volumes(self, pods: Sequence[Pod]) -> list[Pod]:
        """`pods` with the zones and attachments of their bound volumes. Makes no call where no pod has a claim."""
        return volumes.with_bound_volumes(self._api, pods)

    def volume_attachments(self, node_name: str) -> list[volumes.VolumeAttachment]:
        return volumes.volume_attachments(self._api, node_name)

    def image_pulls(self, namespace: str, pod_uids: Collection[str]) -> dict[str, image_pulls.ImagePull]:
        """Pod UID -> when its images were there and what pulling them took; pods without events are absent."""
        return image_pulls.image_pulls(self._api, namespace, pod_uids)

    def annotate_node(self, name: str, annotations: Mapping[str, str | None], resource_version: str = "") -> Node:
        """Set annotations (None removes one). Raises Conflict where `resource_version` is given and stale."""
        return nodes.patch_node(self._api, name, nodes.annotations_patch(annotations, resource_version))

    def cordon(self, node: Node, mark: cordons.CordonMark) -> Node:
        """Hold the node back in our name. Raises Conflict where it changed since it was read: read it, try again."""
        return nodes.patch_node(self._api, node.name, cordons.cordon_patch(node, mark))

    def uncordon(self, node: Node, reason: cordons.MarkReason) -> Node:
        """Take our mark away, and only what it set. A node without it is left alone. Raises Conflict like `cordon`."""
        patch = cordons.uncordon_patch(node, reason)
        return node if patch is None else nodes.patch_node(self._api, node.name, patch)

    def taint_out_of_service(self, node: Node) -> Node:
        """Let the volumes of a node move whose instance is terminated. Raises Conflict like `cordon`."""
        return nodes.patch_node(self._api, node.name, cordons.out_of_service_patch(node))

    def evict(self, pod: Pod, grace_seconds: int) -> evictions.Eviction:
        """Ask for an eviction. Never raises: the answer says what happened, or that it is unknown."""
        return evictions.evict(self._api, pod, grace_seconds)

    def delete_pod(self, pod: Pod, grace_seconds: int) -> evictions.Eviction:
        """Delete whatever the budget says. Never raises, like `evict`."""
        return evictions.delete_pod(self._api, pod, grace_seconds)

    def denied_verbs(self, verbs: Sequence[access.Verb]) -> list[access.Verb]:
        """Those of `verbs` that our role is not allowed."""
        return access.denied_verbs(self._api, verbs)
