"""Evicting and deleting pods, each answer named for what the drain does about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from firstbell.cluster.status import StatusError
from firstbell.errors import ClusterUnreachable

if TYPE_CHECKING:
    from firstbell.capacity.cluster_view import Pod
    from firstbell.cluster.client import ApiServer
    from firstbell.cluster.status import Status


class EvictionResult(StrEnum):
    ACCEPTED = "accepted"
    """The pod will end; it is gone only when its UID is."""
    GONE = "gone"
    """404, or another pod bears the name by now."""
    BUDGET = "budget"
    """A PodDisruptionBudget allows none now."""
    THROTTLED = "throttled"
    """The API server's flow control; try after `retry_after_seconds`."""
    MISCONFIGURED = "misconfigured"
    """Two budgets select the pod, which the eviction API refuses for good."""
    NAMESPACE_TERMINATING = "namespace terminating"
    """The namespace's own deletion ends the pod."""
    DENIED = "denied"
    """401 or 403: an operator has to act."""
    UNKNOWN = "unknown"
    """No answer, or one that does not say: look again."""


@dataclass(frozen=True, slots=True)
class Eviction:
    result: EvictionResult
    detail: str = ""
    retry_after_seconds: float = 0.0


def evict(api: ApiServer, pod: Pod, grace_seconds: int) -> Eviction:
    """Ask for an eviction, which respects budgets. Never waits and never raises: the next pass looks again.

    The Eviction carries the pod's own name and namespace (the API server refuses another), its UID as a precondition,
    so that a namesake on another node is not evicted in its stead, and the grace in whole seconds.
    https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
    """
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": _delete_options(pod, grace_seconds),
    }
    return _answered(api, "POST", f"{_path(pod)}/eviction", body)


def delete_pod(api: ApiServer, pod: Pod, grace_seconds: int) -> Eviction:
    """Delete the pod whatever its budget says. `grace_seconds` is at least 1: 0 would drop the pod from the API while
    its containers still run."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", **_delete_options(pod, max(1, grace_seconds))}
    return _answered(api, "DELETE", _path(pod), body)


def _answered(api: ApiServer, method: str, path: str, body: dict[str, Any]) -> Eviction:
    try:
        api.request(method, path, body=body, patience_seconds=0)
    except StatusError as error:
        return _refused(error.status)
    except ClusterUnreachable as error:
        return Eviction(EvictionResult.UNKNOWN, str(error))
    return Eviction(EvictionResult.ACCEPTED)


def _refused(status: Status) -> Eviction:
    """k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go writes these answers."""
    message = status.message.lower()
    another_uid = status.code == 409 and "uid" in message and "precondition" in message
    if status.code == 404 or another_uid:
        result = EvictionResult.GONE
    elif status.code == 429:
        result = EvictionResult.BUDGET if "DisruptionBudget" in status.causes else EvictionResult.THROTTLED
    elif status.code == 500 and "more than one poddisruptionbudget" in message:
        result = EvictionResult.MISCONFIGURED
    elif status.code == 403 and "NamespaceTerminating" in status.causes:
        result = EvictionResult.NAMESPACE_TERMINATING
    elif status.code in (401, 403):
        result = EvictionResult.DENIED
    else:
        result = EvictionResult.UNKNOWN
    return Eviction(result, str(status), status.retry_after_seconds)


def _delete_options(pod: Pod, grace_seconds: int) -> dict[str, Any]:
    return {"gracePeriodSeconds": grace_seconds, "preconditions": {"uid": pod.uid}}


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"
