"""Nodes and their CSINodes: JSON to `capacity.cluster_view.Node`."""

from __future__ import annotations

from dataclasses import replace
from sys import intern
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from firstbell.capacity.cluster_view import Node
from firstbell.capacity.requests import allocatable_resources
from firstbell.capacity.scheduling import Taint
from firstbell.cluster.client import MERGE_PATCH
from firstbell.cluster.times import unix_seconds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from firstbell.cluster.client import ApiServer

ATTACH_LIMITED_DRIVERS = frozenset({"ebs.csi.aws.com"})
"""CSI drivers whose volumes take an attachment of the instance. File systems (EFS, FSx) are mounted, not attached."""


def parse_node(raw: Mapping[str, Any]) -> Node:
    """A Node as the API server sends it; absent fields read as empty.

    The instance is the last segment of spec.providerID (`aws:///us-west-2a/i-0aa`), whatever the node is called: its
    name may be a private DNS name, an instance id or a domain of the operator's (case 10).
    """
    metadata, spec, status = (raw.get(part) or {} for part in ("metadata", "spec", "status"))
    labels = metadata.get("labels") or {}
    ready: Mapping[str, Any] = next((c for c in status.get("conditions") or () if c.get("type") == "Ready"), {})
    is_ready = ready.get("status") == "True"
    return Node(
        name=metadata.get("name", ""),
        instance_id=_instance_id(spec.get("providerID") or ""),
        instance_type=intern(labels.get("node.kubernetes.io/instance-type", "")),
        zone=intern(labels.get("topology.kubernetes.io/zone", "")),
        ready=is_ready,
        unschedulable=bool(spec.get("unschedulable")),
        allocatable=allocatable_resources(status.get("allocatable") or {}, attach_limit=None),
        labels=labels,
        annotations=metadata.get("annotations") or {},
        taints=tuple(_taint(taint) for taint in spec.get("taints") or ()),
        created_at=unix_seconds(metadata.get("creationTimestamp")),
        ready_at=unix_seconds(ready.get("lastTransitionTime")) if is_ready else 0.0,
        resource_version=metadata.get("resourceVersion", ""),
    )


def list_nodes(api: ApiServer, label_selector: str = "") -> list[Node]:
    return api.list_all("/api/v1/nodes", parse_node, label_selector=label_selector)


def nodes_of_instances(api: ApiServer, instance_ids: Collection[str]) -> dict[str, Node]:
    """Instance id -> its node, in one paged lookup. An id that is absent from the answer has no node."""
    wanted = frozenset(instance_ids)

    def parse(raw: Mapping[str, Any]) -> Node | None:
        if _instance_id((raw.get("spec") or {}).get("providerID") or "") in wanted:
            return parse_node(raw)
        return None

    return {node.instance_id: node for node in api.list_all("/api/v1/nodes", parse)}


def read_node(api: ApiServer, name: str) -> Node:
    """Raises NotFound."""
    return parse_node(api.request("GET", _path(name)))


def patch_node(api: ApiServer, name: str, patch: Mapping[str, Any]) -> Node:
    """A merge patch, and the node as it is now. Raises Conflict where the patch names an older resourceVersion."""
    return parse_node(api.request("PATCH", _path(name), body=patch, content_type=MERGE_PATCH))


def annotations_patch(annotations: Mapping[str, str | None], resource_version: str = "") -> dict[str, Any]:
    """None removes an annotation. Without a resource version, whoever writes last wins, key by key."""
    metadata: dict[str, Any] = {"annotations": dict(annotations)}
    if resource_version:
        metadata["resourceVersion"] = resource_version
    return {"metadata": metadata}


def attach_limits(api: ApiServer) -> dict[str, int]:
    """Node name -> how many volumes may be attached, from its CSINode; a node whose driver says nothing is absent.
    https://kubernetes.io/docs/concepts/storage/storage-limits/#dynamic-volume-limits
    """

    def parse(raw: Mapping[str, Any]) -> tuple[str, int] | None:
        counts = [
            count
            for driver in (raw.get("spec") or {}).get("drivers") or ()
            if driver.get("name") in ATTACH_LIMITED_DRIVERS
            and (count := (driver.get("allocatable") or {}).get("count")) is not None
        ]
        return (raw["metadata"]["name"], min(counts)) if counts else None

    return dict(api.list_all("/apis/storage.k8s.io/v1/csinodes", parse))


def with_attach_limits(nodes: Iterable[Node], limits: Mapping[str, int]) -> list[Node]:
    """`nodes` with what `attach_limits` says in their allocatable; a node without a limit takes any number."""
    return [
        replace(node, allocatable=replace(node.allocatable, volumes=limits[node.name])) if node.name in limits else node
        for node in nodes
    ]


def _instance_id(provider_id: str) -> str:
    return provider_id.rpartition("/")[2]


def _taint(raw: Mapping[str, Any]) -> Taint:
    return Taint(
        key=raw.get("key", ""),
        value=raw.get("value") or "",
        effect=raw.get("effect", ""),
        time_added=raw.get("timeAdded") or "",
    )


def _path(name: str) -> str:
    return f"/api/v1/nodes/{quote(name, safe='')}"
