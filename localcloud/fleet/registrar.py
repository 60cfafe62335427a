"""Nodes in the API server: joined when a machine has booted, deleted when EC2 has ended it, and how busy each is.

What is written goes through workers, in order for each machine, so that the fleet's lock is never held over a slow API
server; a write that fails is tried again until it succeeds. The deletion is the cloud node lifecycle controller's part
(https://kubernetes.io/docs/concepts/architecture/cloud-controller/#node-controller); the pods' deletion after it is pod
garbage collection's, in the real controller manager.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import urllib3

from localcloud.fleet.node_objects import csi_node_object, node_object
from localcloud.fleet.state import Machine

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
WORKERS = 4
TIMEOUT = urllib3.Timeout(connect=2, read=5)
MIRROR = "kubernetes.io/config.mirror"


class Registrar(Protocol):
    """Where machines become nodes."""

    def join(self, machine: Machine, joined: Callable[[], None]) -> None: ...
    def leave(self, machine: Machine, left: Callable[[], None]) -> None: ...
    def busy_pods(self) -> Mapping[str, int]: ...


class Unreachable(Exception):
    """The API server did not answer, or not as it should."""


class Unacceptable(Exception):
    """The API server will never take this object, a label that is none for example; such a node never joins."""


class ApiServerRegistrar:
    """Speaks plain REST as the cloud's admin."""

    def __init__(self, endpoint: str, ca_file: Path, token: str, *, region: str) -> None:
        self._endpoint = endpoint
        self._region = region
        self._http = urllib3.PoolManager(
            ca_certs=str(ca_file),
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT,
            retries=False,
            maxsize=WORKERS + 1,
        )
        self._work: list[queue.SimpleQueue[Callable[[], None]]] = [queue.SimpleQueue() for _ in range(WORKERS)]
        self._kubelet = ""
        for work in self._work:
            threading.Thread(target=self._run, args=(work,), name="registrar", daemon=True).start()

    def join(self, machine: Machine, joined: Callable[[], None]) -> None:
        self._put(machine, lambda: self._register(machine), joined)

    def leave(self, machine: Machine, left: Callable[[], None]) -> None:
        self._put(machine, lambda: self._remove(machine), left)

    def busy_pods(self) -> Mapping[str, int]:
        """Pods per node that a drain would have to move: bound, not finished, no DaemonSet's, no mirror pods."""
        counted: Counter[str] = Counter()
        after = ""
        try:
            while True:
                page = self._request("GET", f"/api/v1/pods?limit=2000&continue={after}")
                for pod in page["items"]:
                    if _moves(pod):
                        counted[pod["spec"]["nodeName"]] += 1
                after = page["metadata"].get("continue", "")
                if not after:
                    return counted
        except Unreachable as unreachable:
            logger.warning("busyness of nodes is unknown: %s", unreachable)
            return counted

    def _put(self, machine: Machine, write: Callable[[], None], done: Callable[[], None]) -> None:
        self._work[hash(machine.instance_id) % WORKERS].put(lambda: self._insist(write, done))

    def _run(self, work: queue.SimpleQueue[Callable[[], None]]) -> None:
        while True:
            work.get()()

    def _insist(self, write: Callable[[], None], done: Callable[[], None]) -> None:
        """Write until it is written; what waits behind it waits too, or a node could be deleted before it is made."""
        while True:
            try:
                write()
            except Unreachable as unreachable:
                logger.warning("will be tried again: %s", unreachable)
                time.sleep(RETRY_SECONDS)
            except Unacceptable as unacceptable:
                logger.error("given up: %s", unacceptable)
                return
            else:
                done()
                return

    def _register(self, machine: Machine) -> None:
        if not machine.alive:
            return  # it was ended before its kubelet came up
        if not self._kubelet:
            self._kubelet = f"{self._request('GET', '/version')['gitVersion']}-eks-localcloud"
        node = node_object(machine, self._region, self._kubelet)
        created = self._request("POST", "/api/v1/nodes", node, accept=(409,))
        if created.get("kind") != "Node":
            created = self._request("GET", f"/api/v1/nodes/{machine.node_name}")
        csi_node = csi_node_object(machine, created["metadata"]["uid"])
        self._request("POST", "/apis/storage.k8s.io/v1/csinodes", csi_node, accept=(409,))

    def _remove(self, machine: Machine) -> None:
        for path in ("/api/v1/nodes", "/apis/storage.k8s.io/v1/csinodes"):
            self._request("DELETE", f"{path}/{machine.node_name}", accept=(404,))

    def _request(self, method: str, path: str, body: Any = None, *, accept: tuple[int, ...] = ()) -> dict[str, Any]:
        try:
            response = self._http.request(
                method,
                self._endpoint + path,
                body=None if body is None else json.dumps(body),
                headers={**self._http.headers, "Content-Type": "application/json"},
            )
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(f"{method} {path}: {error}") from error
        if response.status >= 400 and response.status not in accept:
            kind = Unacceptable if response.status in (400, 413, 422) else Unreachable
            raise kind(f"{method} {path}: {response.status} {response.data[:300]!r}")
        answer: dict[str, Any] = json.loads(response.data)
        return answer


def _moves(pod: Mapping[str, Any]) -> bool:
    owners = pod["metadata"].get("ownerReferences") or []
    return bool(
        pod["spec"].get("nodeName")
        and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        and not any(owner.get("kind") == "DaemonSet" for owner in owners)
        and MIRROR not in (pod["metadata"].get("annotations") or {})
    )
