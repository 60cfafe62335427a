"""What holds a node: its pods, sorted by what removing the node would mean to them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.capacity.demand import is_user_pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from firstbell.capacity.budgets import Budget
    from firstbell.capacity.cluster_view import Pod
    from firstbell.capacity.pools import Pool

OVERDUE_SECONDS = 60.0
"""A pod this long past the end of its grace is over, whatever keeps its object (clocks differ, kubelets are busy)."""
HUB_COMPONENTS = ("hub", "proxy")
"""`component` of the pods that every student's connection goes through (z2jh charts, app=jupyterhub)."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod that keeps its node, as `namespace/name`, and why."""

    pod: str
    why: str


@dataclass(frozen=True, slots=True)
class Occupants:
    users: tuple[Holder, ...] = ()
    """User pods: while there is one, the node is busy."""
    fixed: tuple[Holder, ...] = ()
    """Other pods that must not be moved or lost."""
    unbudgeted: tuple[Holder, ...] = ()
    """System pods that nobody said may move; they hold the node while the cluster needs them."""
    movable: tuple[Pod, ...] = ()
    """System pods that may move, if they fit elsewhere."""


def occupants(
    pods: Iterable[Pod], pool: Pool, system_namespaces: Sequence[str], budgets: Sequence[Budget], now: float
) -> Occupants:
    """Sorts the pods bound to one node. DaemonSet, mirror, finished and preemptible pods hold nothing.

    The rules for what is not a user pod are cluster-autoscaler's, so that the two agree on a node (FAQ.md, "What types
    of pods can prevent CA from removing a node?"): the annotation safe-to-evict: "false" always wins.
    """
    users, fixed, unbudgeted, movable = [], [], [], []
    for pod in pods:
        if pod.finished or pod.mirror or pod.owner_kind == "DaemonSet":
            continue
        if is_user_pod(pod, pool, system_namespaces):
            if not _over(pod, now):
                users.append(_holder(pod, ", ".join(["user pod", *_particulars(pod)])))
        elif pod.safe_to_evict is False or pod.do_not_disrupt:
            fixed.append(_holder(pod, _particulars(pod)[0]))
        elif pod.namespace not in system_namespaces or _over(pod, now):
            continue  # preemptible: its place is free
        elif particulars := _particulars(pod):
            fixed.append(_holder(pod, f"system pod, {', '.join(particulars)}"))
        elif pod.safe_to_evict or any(budget.covers(pod) for budget in budgets):
            movable.append(pod)
        else:
            unbudgeted.append(_holder(pod, "system pod without a disruption budget"))
    return Occupants(tuple(users), tuple(fixed), tuple(unbudgeted), tuple(movable))


def _particulars(pod: Pod) -> list[str]:
    """What besides its running speaks against ending the pod, most telling first."""
    found = {
        'annotation safe-to-evict: "false"': pod.safe_to_evict is False,
        'annotation do-not-disrupt: "true"': pod.do_not_disrupt,
        "part of JupyterHub itself": pod.labels.get("app") == "jupyterhub"
        and pod.labels.get("component") in HUB_COMPONENTS,
        "ending, with grace left": pod.terminating,
        "bare: nothing would make it again": not pod.owner_kind,
        "local storage": pod.local_storage and not pod.safe_to_evict,
    }
    return [words for words, holds in found.items() if holds]


def _over(pod: Pod, now: float) -> bool:
    return pod.terminating and now >= pod.deletion_at + OVERDUE_SECONDS


def _holder(pod: Pod, why: str) -> Holder:
    return Holder(f"{pod.namespace}/{pod.name}", why)
