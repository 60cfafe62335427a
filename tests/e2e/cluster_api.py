"""Kubernetes as an end-to-end test speaks to it, and the objects that it makes there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import urllib3

from localcloud.cloud import LocalCloud

Document = dict[str, Any]
Value = TypeVar("Value")

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Answer:
    status: int
    body: Document


class ClusterApi:
    """Plain calls of one API server with one bearer token (None = anonymous)."""

    def __init__(self, endpoint: str, ca_file: str, token: str | None) -> None:
        self._endpoint = endpoint
        self._ca_file = ca_file
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(ca_certs=ca_file)

    @classmethod
    def of(cls, cloud: LocalCloud) -> Self:
        kubernetes = json.loads(cloud.wiring_file.read_text())["kubernetes"]
        return cls(kubernetes["endpoint"], kubernetes["ca_file"], kubernetes["admin_token"])

    def as_bearer(self, token: str | None) -> ClusterApi:
        return ClusterApi(self._endpoint, self._ca_file, token)

    def call(self, method: str, path: str, body: Document | None = None) -> Answer:
        response = self._pool.request(
            method, self._endpoint + path, json=body, headers=self._headers, timeout=10.0, retries=False
        )
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        return Answer(response.status, response.json() if is_json else {"text": response.data.decode()})

    def get(self, path: str) -> Document:
        answer = self.call("GET", path)
        assert answer.status == 200, answer
        return answer.body

    def create(self, path: str, body: Document) -> Document:
        answer = self.call("POST", path, body)
        assert answer.status == 201, answer
        return answer.body

    def delete(self, path: str, body: Document | None = None) -> None:
        answer = self.call("DELETE", path, body)
        assert answer.status in (200, 202), answer

    def merge(self, path: str, change: Document) -> Document:
        response = self._pool.request(
            "PATCH",
            self._endpoint + path,
            body=json.dumps(change).encode(),
            headers=self._headers | {"Content-Type": "application/merge-patch+json"},
            timeout=10.0,
        )
        assert response.status == 200, response.data
        document: Document = response.json()
        return document

    def exists(self, path: str) -> bool:
        return self.call("GET", path).status == 200

    def await_phase(self, pod_name: str, phase: str) -> Document:
        return await_value(
            f"{pod_name} is {phase}",
            lambda: self.get(f"{PODS}/{pod_name}"),
            lambda pod: bool(pod["status"].get("phase") == phase),
        )

    def await_condition(self, node_name: str, status: str, *, timeout_seconds: float = 30.0) -> Document:
        return await_value(
            f"{node_name} has Ready={status}",
            lambda: self.get(f"{NODES}/{node_name}"),
            lambda node: ready_status(node) == status,
            timeout_seconds=timeout_seconds,
        )


def await_value(
    what: str, read: Callable[[], Value], is_it: Callable[[Value], bool], *, timeout_seconds: float = 30.0
) -> Value:
    """Return the first value read for which `is_it` holds; AssertionError with the last one after the time."""
    deadline = time.monotonic() + timeout_seconds
    value = read()
    while not is_it(value):
        assert time.monotonic() < deadline, f"not within {timeout_seconds:.0f} s: {what}; last seen: {value}"
        time.sleep(POLL_SECONDS)
        value = read()
    return value


def ready_status(node: Document) -> str | None:
    return next((c["status"] for c in node["status"].get("conditions", []) if c["type"] == "Ready"), None)


def node_document(name: str, *, cpu: str = "3920m", memory: str = "15147Mi", pods: str = "58") -> Document:
    """A node as a kubelet registers it, with its own label so that a test's pods go to it alone."""
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"test": name, "kubernetes.io/hostname": name}},
        "spec": {"providerID": f"aws:///us-west-2a/{name}"},
        "status": {
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": pods},
            "allocatable": allocatable,
            "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
        },
    }


def pod_document(name: str, node_name: str, *, grace_seconds: int = 0, command: tuple[str, ...] = ()) -> Document:
    """A pod with one container that only fits on the test's own node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"test": node_name},
            "terminationGracePeriodSeconds": grace_seconds,
            "containers": [
                {
                    "name": "notebook",
                    "image": "quay.io/jupyter/base-notebook:2026-01-05",
                    "command": list(command),
                    "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}},
                }
            ],
        },
    }
