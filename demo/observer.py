"""Watches the API server and the group authority, and keeps the board true. It writes nothing anywhere else."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import urllib3
from kubernetes import client, watch

from demo.board import Board, PoolBoard
from demo.classroom import NAMESPACE, POOL_LABEL
from demo.reactive import is_ready

POLL_SECONDS = 1.0


class Observer:
    """Runs from `start` to `stop`; a thread each for nodes, pods and groups."""

    def __init__(self, kubernetes: Any, autoscaling: Any, board: Board) -> None:
        self._core: Any = client.CoreV1Api(kubernetes)
        self._autoscaling = autoscaling
        self._board = board
        self._stopped = threading.Event()
        make_watch: Callable[[], Any] = watch.Watch
        self._watches = [make_watch(), make_watch()]
        self._threads = [
            threading.Thread(target=self._follow, args=(self._watches[0], self._core.list_node, self.see_node, {})),
            threading.Thread(
                target=self._follow,
                args=(self._watches[1], self._core.list_namespaced_pod, self.see_pod, {"namespace": NAMESPACE}),
            ),
            threading.Thread(target=self._poll_groups),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for each in self._watches:
            each.stop()
        for thread in self._threads:
            thread.join(timeout=5)

    def _follow(
        self, watcher: Any, listing: Any, see: Callable[[str, Mapping[str, Any]], None], scope: Mapping[str, str]
    ) -> None:
        while not self._stopped.is_set():
            # A watch may end or break at any time; the next one starts with the full list again.
            with contextlib.suppress(client.ApiException, OSError, ValueError, urllib3.exceptions.HTTPError):
                for event in watcher.stream(listing, deserialize=False, **scope):
                    see(event["type"], event["object"])
            self._stopped.wait(0.2)

    def see_node(self, change: str, node: Mapping[str, Any]) -> None:
        pool = self._pool((node["metadata"].get("labels") or {}).get(POOL_LABEL))
        if pool is None:
            return
        name = node["metadata"]["name"]
        if change == "DELETED":
            pool.nodes.discard(name)
            return
        pool.nodes.add(name)
        if is_ready(node):
            pool.ready_at.setdefault(name, time.time())

    def see_pod(self, change: str, pod: Mapping[str, Any]) -> None:
        pool = self._pool((pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL))
        if pool is None:
            return
        name = pod["metadata"]["name"]
        gone = change == "DELETED"
        for members, belongs in (
            (pool.pods, not gone),
            (pool.bound, not gone and bool(pod["spec"].get("nodeName"))),
            (pool.running, not gone and pod["status"].get("phase") == "Running"),
        ):
            (members.add if belongs else members.discard)(name)

    def _poll_groups(self) -> None:
        names = list(self._board.pools)
        while not self._stopped.wait(POLL_SECONDS):
            described = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=names)
            for group in described["AutoScalingGroups"]:
                self._board.pools[group["AutoScalingGroupName"]].desired = group["DesiredCapacity"]

    def _pool(self, name: str | None) -> PoolBoard | None:
        return self._board.pools.get(name) if name else None
