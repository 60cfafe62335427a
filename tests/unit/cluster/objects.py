"""Nodes and pods for tests: what a test does not say is of no consequence."""

from __future__ import annotations

from typing import Any

from firstbell.capacity.cluster_view import Node, Pod
from firstbell.capacity.resources import Resources


def a_node(name: str, **said: Any) -> Node:
    ordinary: dict[str, Any] = {
        "instance_id": f"i-{name}",
        "instance_type": "m5.large",
        "zone": "us-west-2a",
        "ready": True,
        "unschedulable": False,
        "allocatable": Resources(cpu_millicores=1930, memory_bytes=7 << 30, pods=29),
        "resource_version": "1",
    }
    return Node(name=name, **(ordinary | said))


def a_pod(uid: str, **said: Any) -> Pod:
    ordinary: dict[str, Any] = {
        "name": f"pod-{uid}",
        "namespace": "hub",
        "requests": Resources(cpu_millicores=500, memory_bytes=1 << 30, pods=1),
    }
    return Pod(uid=uid, **(ordinary | said))
