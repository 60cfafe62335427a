"""The students of a class, as JupyterHub's KubeSpawner makes their pods."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

NAMESPACE = "jupyterhub"
POOL_LABEL = "hub.jupyter.org/pool-name"
DEDICATED = "hub.jupyter.org/dedicated"
REFERENCE_LABEL = "firstbell.dev/reference"
SPAWNS_AT_ONCE = 4
"""Of the hub's own limit of concurrent spawns (64 by default); each is one call here."""


@dataclass(frozen=True)
class Classroom:
    """One class: how many students come, to which pool, and what each asks for (Kubernetes quantities)."""

    reference: str
    students: int
    pool: str
    cpu: str
    memory: str
    announced: bool = True
    """Whether a portal has signalled it; then its pods carry the signal's reference."""

    def pod_name(self, student: int) -> str:
        return f"jupyter-{self.reference}-{student:03d}" + ("" if self.announced else "-unannounced")


def user_pod(room: Classroom, student: int) -> dict[str, Any]:
    """One student's pod: labels, toleration and requests of the z2jh chart's single-user server.

    https://z2jh.jupyter.org/en/stable/resources/reference.html#singleuser and the Kubernetes API fields that
    https://jupyterhub-kubespawner.readthedocs.io/en/latest/objects.html `make_pod` fills.
    """
    name = room.pod_name(student)
    resources = {"cpu": room.cpu, "memory": room.memory}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {
                "app": "jupyterhub",
                "component": "singleuser-server",
                "app.kubernetes.io/component": "singleuser-server",
                "app.kubernetes.io/managed-by": "kubespawner",
                "hub.jupyter.org/network-access-hub": "true",
                "hub.jupyter.org/servername": "",
                "hub.jupyter.org/username": name.removeprefix("jupyter-"),
                **({REFERENCE_LABEL: room.reference} if room.announced else {}),
            },
            "annotations": {"hub.jupyter.org/username": name.removeprefix("jupyter-")},
        },
        "spec": {
            "automountServiceAccountToken": False,
            "restartPolicy": "OnFailure",
            "nodeSelector": {POOL_LABEL: room.pool},
            "tolerations": [{"key": DEDICATED, "operator": "Equal", "value": "user", "effect": "NoSchedule"}],
            "containers": [
                {
                    "name": "notebook",
                    "image": "quay.io/jupyter/datascience-notebook:2026-11-23",
                    "args": ["jupyterhub-singleuser"],
                    "env": [{"name": "JUPYTERHUB_USER", "value": name.removeprefix("jupyter-")}],
                    "ports": [{"name": "notebook-port", "containerPort": 8888}],
                    "resources": {"requests": resources, "limits": {"memory": room.memory}},
                }
            ],
        },
    }


def let_in(core: Any, rooms: Sequence[Classroom], over_seconds: float) -> None:
    """Create all the rooms' pods through a CoreV1Api, evenly spread over a time.

    The rooms fill side by side, as people come.
    """
    arrivals = sorted(
        ((student / room.students, room, student) for room in rooms for student in range(room.students)),
        key=lambda arrival: arrival[0],
    )
    opened = time.monotonic()

    def spawn(arrival: tuple[float, Classroom, int]) -> None:
        moment, room, student = arrival
        time.sleep(max(0.0, opened + moment * over_seconds - time.monotonic()))
        core.create_namespaced_pod(NAMESPACE, user_pod(room, student))

    with ThreadPoolExecutor(SPAWNS_AT_ONCE) as hub:
        list(hub.map(spawn, arrivals))
