"""Nodes, pods and members as the tests of this folder need them."""

from __future__ import annotations

from typing import Any

from firstbell.capacity.budgets import Budget
from firstbell.capacity.cluster_view import Node, Pod
from firstbell.capacity.groups import Group, Member
from firstbell.capacity.pools import Pool
from firstbell.capacity.resources import Resources
from firstbell.idle.verdicts import Candidate, Home, Surroundings

NOW = 1_000_000.0
GIB = 2**30
POOL = Pool(name="notebook", pod=Resources(100, GIB, pods=1), group="asg-notebook")
ROOM = Resources(3920, 14 * GIB, 18 * GIB, 58, volumes=25)
BUDGET = Budget("kube-system", {"k8s-app": "kube-dns"})


def node(name: str = "a", **changes: Any) -> Node:
    given = {
        "instance_id": f"i-{name}",
        "instance_type": "m5.xlarge",
        "zone": "us-west-2a",
        "ready": True,
        "unschedulable": False,
        "allocatable": ROOM,
    }
    return Node(name=name, **{**given, **changes})


def member(name: str = "a", **changes: Any) -> Member:
    return Member(
        **{
            "instance_id": f"i-{name}",
            "lifecycle": "InService",
            "instance_type": "m5.xlarge",
            "zone": "us-west-2a",
            **changes,
        }
    )


def pod(name: str = "jupyter-ada", namespace: str = "hub", **changes: Any) -> Pod:
    given = {"requests": Resources(100, GIB, pods=1)}
    return Pod(uid=name, name=name, namespace=namespace, **{**given, **changes})


def system_pod(name: str = "coredns-1", **changes: Any) -> Pod:
    given = {"owner_kind": "ReplicaSet", "labels": {"k8s-app": "kube-dns"}}
    return pod(name, "kube-system", **{**given, **changes})


def candidate(name: str = "a", *pods: Pod, marked_at: float | None = None, **changes: Any) -> Candidate:
    """A member with its node; `changes` are the node's."""
    return Candidate(member(name), node(name, **changes), pods, marked_at)


def around(*homes: Home, **changes: Any) -> Surroundings:
    return Surroundings(**{"pool": POOL, "budgets": (BUDGET,), "homes": homes, "now": NOW, **changes})


def home(name: str = "other", free: Resources = ROOM, **changes: Any) -> Home:
    return Home(node(name, **changes), free)


def group(*names: str, **changes: Any) -> Group:
    given = {"desired": len(names), "min_size": 0, "max_size": 20, "members": tuple(member(n) for n in names)}
    return Group(**{"name": "asg-notebook", "zones": ("us-west-2a",), **given, **changes})
