"""What a pass of a drain does, decided without doing it: pod by pod, each with its reason. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from firstbell.capacity.scheduling import Taint, tolerated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from firstbell.capacity.cluster_view import Pod
    from firstbell.capacity.drains import Drain, Hook

MARGIN_SECONDS = 10.0
"""Before the deadline: graces end by then, and what is still there is forced or left."""
LAST_GRACE_RESERVE_SECONDS = 5.0
"""Of the margin, what a forced pod does not get: the kubelet and we need it to see the end."""
CRITICAL_PRIORITY = 2_000_000_000
"""system-cluster-critical and above; a user's own PriorityClass ends at 1000000000.
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#priorityclass"""
CRITICAL_LEAD_SECONDS = 30.0
"""Critical pods wait for the others no longer than until this long before the margin."""
SETTLE_SECONDS = 3.0
"""From the cordon to the first eviction: the other notices of a storm are cordoned meanwhile."""
HURRY_SECONDS = 60.0
"""With less than this left nothing waits for other notices."""
MOST_PATIENCE_SECONDS = 20.0
"""The longest that waiting notices can hold evictions back."""
UNREACHABLE_SECONDS = 30.0
"""How long a node may be NotReady before its drain is over: its kubelet will confirm nothing any more."""
HEARTBEAT_SHARE = 0.4
"""Of the hook's heartbeat timeout; below one half, so that one lost heartbeat loses nothing."""
FIRST_LOOK_SECONDS = 4.0
SLOWEST_LOOK_SECONDS = 30.0

INTERRUPTION_TAINT = "firstbell.dev/interruption"


class Action(StrEnum):
    SKIP = "skip"
    """Neither evicted nor waited for."""
    WAIT = "wait"
    EVICT = "evict"
    FORCE = "force"
    """Deleted, past its budget or its own grace."""


@dataclass(frozen=True, slots=True)
class PodStep:
    pod: Pod
    action: Action
    reason: str
    grace_seconds: int = 0

    @property
    def remains(self) -> bool:
        """Whether the drain is not over while this pod is there."""
        return self.action is not Action.SKIP


@dataclass(frozen=True, slots=True)
class Terms:
    """What a drain's pods are planned by."""

    deadline: float
    force: bool
    """Whether pods that are still there at the deadline are deleted (else left to it)."""
    cordoned_at: float
    kind: str
    retry_at: Mapping[str, float]

    @property
    def last_call(self) -> float:
        return self.deadline - MARGIN_SECONDS


def terms_of(drain: Drain, *, force: bool) -> Terms:
    return Terms(drain.deadline, force, drain.cordoned_at, drain.kind, drain.retry_at)


class Ending(StrEnum):
    """How a drain is over."""

    DRAINED = "drained"
    DEADLINE = "deadline"
    UNREACHABLE = "unreachable"
    """The node's kubelet is gone; what it still ran can't be known."""
    VANISHED = "vanished"
    """The node is no longer in the cluster."""


def plan_pods(pods: Iterable[Pod], terms: Terms, now: float) -> tuple[PodStep, ...]:
    """A step for each pod of the node, in the order to take them: long graces first, critical pods last."""
    ordered = sorted(pods, key=lambda p: (_critical(p), -p.grace_seconds, p.namespace, p.name))
    steps = [_step(pod, terms, now) for pod in ordered]
    others_remain = any(step.remains and not _critical(step.pod) for step in steps)
    if others_remain and now < terms.last_call - CRITICAL_LEAD_SECONDS:
        steps = [_after_the_others(step) for step in steps]
    return tuple(steps)


def may_evict(drain: Drain, *, notices_waiting: bool, now: float) -> bool:
    """Whether evictions may begin: every notice of a storm should be cordoned first, so that no pod moves onto the next
    doomed node; but not at the price of the pods' own grace."""
    if drain.deadline - now < HURRY_SECONDS:
        return True
    waited = now - drain.cordoned_at
    if waited < SETTLE_SECONDS:
        return False
    return not notices_waiting or waited >= MOST_PATIENCE_SECONDS


def ending(drain: Drain, steps: Sequence[PodStep], *, volumes_attached: bool, now: float) -> Ending | None:
    """Whether the drain is over after these steps were looked at; None = it goes on.

    Volumes are waited for until the last call: a replacement pod can't mount what is still attached here.
    """
    remaining = [step for step in steps if step.remains]
    if not remaining and (not volumes_attached or now >= drain.deadline - MARGIN_SECONDS):
        return Ending.DRAINED
    if now >= drain.deadline:
        return Ending.DEADLINE
    if drain.not_ready_since and now - drain.not_ready_since >= UNREACHABLE_SECONDS:
        return Ending.UNREACHABLE
    return None


def next_pass_at(drain: Drain, steps: Sequence[PodStep], *, blocked: int, now: float) -> float:
    """When to look again: at the next thing that is known to happen, else ever more slowly. `blocked` = pods that a
    budget refused in this pass."""
    wakes = [at for at in (drain.deadline - MARGIN_SECONDS, drain.deadline) if at > now]
    wakes += [heartbeat_at(hook) for hook in drain.hooks if not hook.completed]
    wakes += [step.pod.deletion_at + 1 for step in steps if step.remains and step.pod.deletion_at > now]
    wakes += [at for at in drain.retry_at.values() if at > now]
    if drain.not_ready_since:
        wakes.append(drain.not_ready_since + UNREACHABLE_SECONDS)
    wakes.append(now + _pause_seconds(drain, blocked, now))
    return max(now + 1, min(wakes))


def heartbeat_at(hook: Hook) -> float:
    return hook.beaten_at + HEARTBEAT_SHARE * hook.heartbeat_seconds


def settle_at(drain: Drain, now: float) -> float:
    """When a drain that may not evict yet is looked at again."""
    return max(drain.cordoned_at + SETTLE_SECONDS, now + 1)


def _step(pod: Pod, terms: Terms, now: float) -> PodStep:
    skipped = _why_skipped(pod, terms)
    if skipped:
        return PodStep(pod, Action.SKIP, skipped)
    left = terms.deadline - now
    last_call = terms.force and now >= terms.last_call
    if pod.terminating and not (last_call and pod.deletion_at > terms.deadline):
        return PodStep(pod, Action.WAIT, "terminating")
    if last_call:
        reason = "its grace outlasts the instance" if pod.terminating else "still there when the instance goes"
        return PodStep(pod, Action.FORCE, reason, max(1, math.floor(left - LAST_GRACE_RESERVE_SECONDS)))
    if terms.retry_at.get(pod.uid, 0.0) > now:
        return PodStep(pod, Action.WAIT, "refused a moment ago")
    grace = min(pod.grace_seconds, math.floor(left - MARGIN_SECONDS))
    reason = "evict" if grace == pod.grace_seconds else "evict, with the grace that is left"
    return PodStep(pod, Action.EVICT, reason, max(1, grace))


def _why_skipped(pod: Pod, terms: Terms) -> str:
    """Why a pod is none of the drain's business; empty where it is (case 19)."""
    if pod.finished:
        return "finished"
    if pod.mirror:
        return "mirror of a static pod"
    if pod.owner_kind == "DaemonSet":
        return "of a DaemonSet"
    taint = Taint(INTERRUPTION_TAINT, terms.kind)
    if terms.cordoned_at and pod.created_at > terms.cordoned_at and tolerated((taint,), pod.tolerations):
        return "came after the cordon, which it tolerates"
    return ""


def _after_the_others(step: PodStep) -> PodStep:
    if step.action is Action.EVICT and _critical(step.pod):
        return PodStep(step.pod, Action.WAIT, "critical: after the others")
    return step


def _critical(pod: Pod) -> bool:
    return pod.priority >= CRITICAL_PRIORITY


def _pause_seconds(drain: Drain, blocked: int, now: float) -> float:
    if blocked:
        return float(min(FIRST_LOOK_SECONDS * 2**drain.blocked_passes, SLOWEST_LOOK_SECONDS))
    return min(max(FIRST_LOOK_SECONDS, (now - drain.cordoned_at) / 2), SLOWEST_LOOK_SECONDS)
