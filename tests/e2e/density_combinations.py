"""Nodes, pods and DaemonSets whose density is tried on the real scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from firstbell.capacity.density import places
from firstbell.capacity.requests import allocatable_resources, pod_requests
from firstbell.capacity.scheduling import Taint
from localcloud.controlplane.plane import DEAD_KUBELET_LABEL
from localcloud.fleet.sizes import node_size, recorded_types
from tests.e2e.cluster_api import Document

MOST_PODS = 32
"""Of one combination: enough for the pods of a small node, so that the whole stays a matter of seconds."""
POOL_TAINT = Taint("hub.jupyter.org/dedicated", "user")


def container(name: str, *, sidecar: bool = False, **requests: str) -> Document:
    asked = {key.replace("_", "-").replace("gpu", "nvidia.com/gpu"): amount for key, amount in requests.items()}
    limits = {key: amount for key, amount in asked.items() if "/" in key}
    resources = {"requests": asked, "limits": limits}
    return {"name": name, "image": "notebook", "resources": resources} | (
        {"restartPolicy": "Always"} if sidecar else {}
    )


PODS: dict[str, Document] = {
    "tiny": {"containers": [container("a", cpu="10m", memory="16Mi")]},
    "student": {"containers": [container("a", cpu="500m", memory="2Gi")]},
    "worker": {"containers": [container("a", cpu="1500m", memory="7Gi")]},
    "odd": {
        "containers": [container("a", cpu="333m", memory="1291e6"), container("b", cpu="0.1", memory="3060164198400m")]
    },
    "unasking": {"containers": [container("a", memory="1.5Gi")]},
    "sidecar": {
        "initContainers": [
            container("proxy", sidecar=True, cpu="100m", memory="128Mi"),
            container("fetch", cpu="700m", memory="256Mi"),
        ],
        "containers": [container("a", cpu="250m", memory="1Gi")],
    },
    "heavy-start": {
        "initContainers": [container("unpack", cpu="900m", memory="3Gi")],
        "containers": [container("a", cpu="100m", memory="1Gi")],
    },
    "overhead": {"runtimeClassName": "sandboxed", "containers": [container("a", cpu="300m", memory="1Gi")]},
    "pod-level": {
        "resources": {"requests": {"cpu": "700m", "memory": "1Gi"}},
        "containers": [container("a", cpu="100m")],
    },
    "scratch": {"containers": [container("a", cpu="50m", ephemeral_storage="5Gi")]},
    "gpu": {"containers": [container("a", cpu="100m", memory="1Gi", gpu="1")]},
}


def required(*terms: list[Document]) -> Document:
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": term} for term in terms]
            }
        }
    }


def asked_of(key: str, operator: str, *values: str) -> Document:
    return {"key": key, "operator": operator, "values": list(values)}


DAEMONSETS: dict[str, Document] = {
    "aws-node": {
        "hostNetwork": True,
        "affinity": required(
            [
                asked_of("daemonsets", "In", "add-ons", "many"),
                asked_of("eks.amazonaws.com/compute-type", "NotIn", "fargate"),
            ]
        ),
        "containers": [container("node", cpu="25m"), container("policy", cpu="25m")],
    },
    "kube-proxy": {
        "hostNetwork": True,
        "affinity": required([asked_of("daemonsets", "In", "add-ons")], [asked_of("daemonsets", "In", "many")]),
        "containers": [container("proxy", cpu="100m")],
    },
    "log-agent": {
        "nodeSelector": {"daemonsets": "many"},
        "containers": [container("agent", cpu="120m", memory="300Mi")],
    },
    "image-puller": {"nodeSelector": {"daemonsets": "many"}, "containers": [container("pause")]},
    "intolerant": {"nodeSelector": {"pool": "density"}, "tolerations": [], "containers": [container("a", cpu="1")]},
}
"""Pod specs; each tolerates everything unless it says otherwise."""


@dataclass(frozen=True)
class Combination:
    """One node. `volumes` are attached by each of its pods."""

    instance_type: str
    pod: str
    daemonsets: str
    volumes: int = 0

    @cached_property
    def name(self) -> str:
        return f"{self.instance_type}-{self.pod}-{self.daemonsets}-{self.volumes}".replace(".", "-")

    def node(self) -> Document:
        size = node_size(self.instance_type)
        labels = {
            "combination": self.name,
            "pool": "density",
            "daemonsets": self.daemonsets,
            DEAD_KUBELET_LABEL: "dead",
        }
        return {
            "metadata": {"name": self.name, "labels": labels},
            "spec": {"taints": [{"key": POOL_TAINT.key, "value": POOL_TAINT.value, "effect": POOL_TAINT.effect}]},
            "status": {
                "capacity": dict(size.capacity),
                "allocatable": dict(size.allocatable),
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }

    def pod_spec(self) -> Document:
        return {
            "nodeSelector": {"combination": self.name},
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            **PODS[self.pod],
        }


def combinations() -> list[Combination]:
    """Every recorded type with every other pod; the DaemonSets take turns."""
    sets = ("none", "add-ons", "many")
    types = [name for name in recorded_types() if "pods" in node_size(name).allocatable]
    crossed = [
        Combination(name, pod, sets[(row + column) % len(sets)])
        for row, name in enumerate(types)
        for column, pod in enumerate(PODS)
        if (row + column) % 2 == 0
        if pod != "scratch" or "ephemeral-storage" in node_size(name).allocatable
    ]
    return [one for one in crossed if estimate(one) <= MOST_PODS]


def estimate(combination: Combination) -> int:
    """How many fit on the bare node, to leave out those that would take thousands of pods."""
    offered = allocatable_resources(node_size(combination.instance_type).allocatable)
    return places(offered, pod_requests(PODS[combination.pod]))
