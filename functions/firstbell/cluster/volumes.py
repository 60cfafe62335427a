"""What a pod's volumes bind it to: zones, attachments of the instance, and the attachments that a drain waits for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firstbell.cluster.nodes import ATTACH_LIMITED_DRIVERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from firstbell.capacity.cluster_view import Pod
    from firstbell.cluster.client import ApiServer

ZONE_LABELS = ("topology.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone")
NO_ZONE = "(none)"
"""The zone of a pod whose volumes lie in different zones: no node has it, so the pod fits nowhere."""


@dataclass(frozen=True, slots=True)
class BoundVolume:
    """A PersistentVolume that a claim is bound to."""

    zones: tuple[str, ...]
    """Zones that may mount it; empty = any."""
    attached: bool
    """Whether it takes an attachment of the instance."""


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    name: str
    volume: str
    """Name of the PersistentVolume."""
    attached: bool


def with_bound_volumes(api: ApiServer, pods: Sequence[Pod]) -> list[Pod]:
    """`pods` with `zones` and `requests.volumes` as their bound volumes have them.

    Claims and volumes are listed only if one of the pods has a claim. A claim that is not bound yet binds where its pod
    is placed (WaitForFirstConsumer), so it allows every zone and counts as an attachment.
    """
    if not any(pod.claims for pod in pods):
        return list(pods)
    volumes = _volumes_by_claim(api)
    return [_bound(pod, volumes) if pod.claims else pod for pod in pods]


def volume_attachments(api: ApiServer, node_name: str) -> list[VolumeAttachment]:
    """The VolumeAttachments of one node. The API server selects them by name only, so all are read."""

    def parse(raw: Mapping[str, Any]) -> VolumeAttachment | None:
        spec = raw.get("spec") or {}
        if spec.get("nodeName") != node_name:
            return None
        return VolumeAttachment(
            name=(raw.get("metadata") or {}).get("name", ""),
            volume=(spec.get("source") or {}).get("persistentVolumeName") or "",
            attached=bool((raw.get("status") or {}).get("attached")),
        )

    return api.list_all("/apis/storage.k8s.io/v1/volumeattachments", parse)


def _volumes_by_claim(api: ApiServer) -> dict[tuple[str, str], BoundVolume]:
    """(namespace, claim) -> its volume; from the volumes alone, since each names the claim that it is bound to."""

    def parse(raw: Mapping[str, Any]) -> tuple[tuple[str, str], BoundVolume] | None:
        spec = raw.get("spec") or {}
        claim = spec.get("claimRef") or {}
        if (raw.get("status") or {}).get("phase") != "Bound":
            return None
        return (claim.get("namespace", ""), claim.get("name", "")), BoundVolume(_zones(spec), _attached(spec))

    return dict(api.list_all("/api/v1/persistentvolumes", parse))


def _bound(pod: Pod, volumes: Mapping[tuple[str, str], BoundVolume]) -> Pod:
    found = [volumes.get((pod.namespace, claim)) for claim in pod.claims]
    choices = [frozenset(volume.zones) for volume in found if volume is not None and volume.zones]
    zones: tuple[str, ...] = ()
    if choices:
        zones = tuple(sorted(choices[0].intersection(*choices[1:]))) or (NO_ZONE,)
    attachments = sum(volume is None or volume.attached for volume in found)
    return replace(pod, zones=zones, requests=replace(pod.requests, volumes=attachments))


def _zones(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Zones of spec.nodeAffinity: its terms are ORed, so one without a zone allows all."""
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    zones: set[str] = set()
    for term in terms:
        values = [
            value
            for expression in term.get("matchExpressions") or ()
            if expression.get("key") in ZONE_LABELS and expression.get("operator") == "In"
            for value in expression.get("values") or ()
        ]
        if not values:
            return ()
        zones.update(values)
    return tuple(sorted(zones))


def _attached(spec: Mapping[str, Any]) -> bool:
    return "awsElasticBlockStore" in spec or (spec.get("csi") or {}).get("driver") in ATTACH_LIMITED_DRIVERS
