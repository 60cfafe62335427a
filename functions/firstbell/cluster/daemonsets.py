"""DaemonSets, for what they will run on a node that does not exist yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firstbell.capacity.affinity import required_terms
from firstbell.capacity.cluster_view import DaemonSet
from firstbell.capacity.requests import pod_requests
from firstbell.cluster.pods import tolerations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firstbell.cluster.client import ApiServer


def parse_daemonset(raw: Mapping[str, Any]) -> DaemonSet:
    """A DaemonSet by its pod template; absent fields read as empty."""
    spec = ((raw.get("spec") or {}).get("template") or {}).get("spec") or {}
    metadata = raw.get("metadata") or {}
    return DaemonSet(
        name=f"{metadata.get('namespace', '')}/{metadata.get('name', '')}",
        requests=pod_requests(spec),
        node_selector=spec.get("nodeSelector") or {},
        affinity=required_terms(spec),
        tolerations=tolerations(spec),
        host_network=bool(spec.get("hostNetwork")),
    )


def list_daemonsets(api: ApiServer) -> list[DaemonSet]:
    return api.list_all("/apis/apps/v1/daemonsets", parse_daemonset)
