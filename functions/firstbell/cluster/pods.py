"""Pods: JSON to `capacity.cluster_view.Pod`."""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING, Any

from firstbell.capacity.affinity import required_terms
from firstbell.capacity.cluster_view import Pod
from firstbell.capacity.requests import pod_requests
from firstbell.capacity.scheduling import Toleration
from firstbell.cluster.times import unix_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firstbell.cluster.client import ApiServer

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
_PODS = "/api/v1/pods"


def parse_pod(raw: Mapping[str, Any]) -> Pod:
    """A Pod as the API server sends it; absent fields read as empty."""
    metadata, spec, status = (raw.get(part) or {} for part in ("metadata", "spec", "status"))
    annotations = metadata.get("annotations") or {}
    owner: Mapping[str, Any] = next((o for o in metadata.get("ownerReferences") or () if o.get("controller")), {})
    since = {
        c.get("type"): unix_seconds(c.get("lastTransitionTime"))
        for c in status.get("conditions") or ()
        if c.get("status") == "True"
    }
    safe_to_evict = annotations.get("cluster-autoscaler.kubernetes.io/safe-to-evict")
    name = metadata.get("name", "")
    volumes = spec.get("volumes") or ()
    claims = tuple(claim for volume in volumes if (claim := _claim(name, volume)))
    return Pod(
        uid=metadata.get("uid", ""),
        name=name,
        namespace=intern(metadata.get("namespace", "")),
        requests=pod_requests(spec, volumes=len(claims)),
        node_name=intern(spec.get("nodeName") or ""),
        created_at=unix_seconds(metadata.get("creationTimestamp")),
        scheduled_at=since.get("PodScheduled", 0.0),
        ready_at=since.get("Ready", 0.0),
        labels=metadata.get("labels") or {},
        node_selector=node_selector(spec),
        tolerations=tolerations(spec),
        owner_kind=intern(owner.get("kind", "")),
        owner_name=intern(owner.get("name", "")),
        mirror="kubernetes.io/config.mirror" in annotations,
        host_network=bool(spec.get("hostNetwork")),
        priority=spec.get("priority") or 0,
        terminating="deletionTimestamp" in metadata,
        finished=status.get("phase") in ("Succeeded", "Failed"),
        grace_seconds=spec.get("terminationGracePeriodSeconds", 30),
        deletion_at=unix_seconds(metadata.get("deletionTimestamp")),
        claims=claims,
        safe_to_evict=None if safe_to_evict is None else safe_to_evict == "true",
        do_not_disrupt=annotations.get("karpenter.sh/do-not-disrupt") == "true",
        local_storage=any(_local(volume) for volume in volumes),
    )


def list_pods(api: ApiServer) -> list[Pod]:
    """Every pod of the cluster that is neither Succeeded nor Failed."""
    return api.list_all(_PODS, parse_pod, field_selector=UNFINISHED)


def pending_pods(api: ApiServer) -> list[Pod]:
    """Pods that no node has been found for."""
    return api.list_all(_PODS, parse_pod, field_selector="spec.nodeName=,status.phase=Pending")


def pods_on_node(api: ApiServer, node_name: str) -> list[Pod]:
    """Every pod bound to the node, finished ones included."""
    return api.list_all(_PODS, parse_pod, field_selector=f"spec.nodeName={node_name}")


def node_selector(spec: Mapping[str, Any]) -> dict[str, str]:
    """nodeSelector, and the single-valued `In` expressions of a required node affinity of one term (terms are ORed, so
    several of them select nothing for sure)."""
    selector = dict(spec.get("nodeSelector") or {})
    terms = required_terms(spec)
    if len(terms) == 1:
        selector |= {r.key: r.values[0] for r in terms[0] if r.operator == "In" and len(r.values) == 1}
    return selector


def tolerations(spec: Mapping[str, Any]) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(
            key=intern(raw.get("key") or ""),
            operator=intern(raw.get("operator") or "Equal"),
            value=intern(raw.get("value") or ""),
            effect=intern(raw.get("effect") or ""),
        )
        for raw in spec.get("tolerations") or ()
    )


def _claim(pod_name: str, volume: Mapping[str, Any]) -> str:
    """https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/#persistentvolumeclaim-naming"""
    if "ephemeral" in volume:
        return f"{pod_name}-{volume.get('name', '')}"
    return (volume.get("persistentVolumeClaim") or {}).get("claimName") or ""


def _local(volume: Mapping[str, Any]) -> bool:
    """`isLocalVolume` of kubernetes/autoscaler/cluster-autoscaler/utils/drain: an emptyDir in memory is not one."""
    empty_dir = volume.get("emptyDir")
    return "hostPath" in volume or (empty_dir is not None and empty_dir.get("medium") != "Memory")
