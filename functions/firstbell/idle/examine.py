"""Looks at each node of a pool: is it idle, or what keeps it? Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from firstbell.capacity.scheduling import selects, tolerated
from firstbell.idle.occupants import Holder, Occupants, occupants
from firstbell.idle.verdicts import Candidate, Finding, Home, Surroundings, Verdict
from firstbell.reconcile.holds import HELD_BY_US, SCALE_DOWN_DISABLED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from firstbell.capacity.cluster_view import Pod

_REMOVERS = (
    "firstbell.dev/interruption",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "aws-node-termination-handler/",
    "node.kubernetes.io/out-of-service",
)
"""Taints (or their beginnings) of those who are removing the node already."""

_FORBIDDING = (SCALE_DOWN_DISABLED, "karpenter.sh/do-not-disrupt")
"""Annotations that forbid to remove the node when they are "true"."""


def examine(candidates: Iterable[Candidate], around: Surroundings) -> list[Verdict]:
    """Each node by itself: IDLE, or what keeps it. Those that are marked come first, so that what was begun is ended
    and the answer is the same at the next evaluation."""
    ordered = sorted(candidates, key=lambda c: (c.marked_at is None, c.member.instance_id))
    sorted_pods = {
        c.member.instance_id: occupants(c.pods, around.pool, around.system_namespaces, around.budgets, around.now)
        for c in ordered
    }
    alone = [_examine_one(c, sorted_pods[c.member.instance_id]) for c in ordered]
    if around.whole_cluster_goes:
        return alone
    return _with_homes(alone, sorted_pods, list(around.homes))


def _examine_one(candidate: Candidate, pods: Occupants) -> Verdict:
    """System pods that may move, or that nobody said may move, are looked at later: they depend on the other nodes."""
    return next(_obstacles(candidate, pods), Verdict(candidate, Finding.IDLE))


def _obstacles(candidate: Candidate, pods: Occupants) -> Iterator[Verdict]:
    """What keeps the node, most telling first."""
    member, node = candidate.member, candidate.node
    if member.lifecycle != "InService":
        yield Verdict(candidate, Finding.NOT_IN_SERVICE, f"its lifecycle state is {member.lifecycle}")
    if node is None:
        yield Verdict(candidate, Finding.NOT_JOINED, "its instance runs and no node is registered for it")
        return
    if taint := next((t.key for t in node.taints if t.key.startswith(_REMOVERS)), None):
        yield Verdict(candidate, Finding.LEAVING, f"it carries the taint {taint}")
    if pods.users:
        yield Verdict(candidate, Finding.BUSY, f"{len(pods.users)} user pods", pods.users)
    if not node.ready:
        yield Verdict(candidate, Finding.UNREACHABLE, "what runs on it cannot be known")
    for annotation in _FORBIDDING:
        # Our own holds are for cluster-autoscaler; what a reservation needs of the pool is reckoned here anew.
        ours = annotation == SCALE_DOWN_DISABLED and HELD_BY_US in node.annotations
        if node.annotations.get(annotation) == "true" and not ours:
            yield Verdict(candidate, Finding.HELD, f'it carries the annotation {annotation}: "true"')
    if node.unschedulable:
        yield Verdict(candidate, Finding.CORDONED, "somebody cordoned it and may want it as it is")
    if member.protected_from_scale_in:
        yield Verdict(candidate, Finding.PROTECTED, "its instance is protected from scale-in")
    if pods.fixed:
        yield Verdict(candidate, Finding.BLOCKED, f"{len(pods.fixed)} pods that must not end", pods.fixed)


def _with_homes(alone: Sequence[Verdict], pods: Mapping[str, Occupants], homes: list[Home]) -> list[Verdict]:
    """Idle nodes with system pods go only if each of these may move and has a home that stays.

    One node after another: a node that goes is no home any more, and one that takes a pod in stays.
    """
    marked = {v.node_name for v in alone if v.candidate.marked_at is not None}
    undecided = {v.node_name for v in alone if v.finding is Finding.IDLE}
    homes = [home for home in homes if home.node.name not in marked]
    homes.sort(key=lambda home: home.node.name in undecided)  # those that stay anyway come first
    verdicts, hosts = [], set[str]()
    for verdict in alone:
        judged = verdict
        if verdict.finding is Finding.IDLE:
            judged, homes = _with_system_pods(verdict, pods[verdict.instance_id], homes, hosts)
        verdicts.append(judged)
    return verdicts


def _with_system_pods(
    verdict: Verdict, pods: Occupants, homes: list[Home], hosts: set[str]
) -> tuple[Verdict, list[Home]]:
    """The verdict, and the homes as they are once it is carried out. Adds to `hosts` the homes that take a pod in."""
    if verdict.node_name in hosts:
        return replace(
            verdict, finding=Finding.NEEDED, detail="system pods of nodes that go find their home here"
        ), homes
    if pods.unbudgeted:
        detail = "system pods that no disruption budget says may move"
        return replace(verdict, finding=Finding.BLOCKED, detail=detail, holders=pods.unbudgeted), homes
    left = [home for home in homes if home.node.name != verdict.node_name]
    taken: set[str] = set()
    for pod in pods.movable:
        at = next((index for index, home in enumerate(left) if _takes(home, pod)), None)
        if at is None:
            homeless = Holder(f"{pod.namespace}/{pod.name}", "system pod that fits on no node that stays")
            return replace(verdict, finding=Finding.BLOCKED, detail=homeless.why, holders=(homeless,)), homes
        left[at] = replace(left[at], free=left[at].free - pod.requests)
        taken.add(left[at].node.name)
    hosts |= taken
    return replace(verdict, moving=pods.movable), left


def _takes(home: Home, pod: Pod) -> bool:
    return (
        selects(pod.node_selector, home.node.labels)
        and tolerated(home.node.taints, pod.tolerations)
        and (not pod.zones or home.node.zone in pod.zones)
        and home.free.covers(pod.requests)
    )
