"""The end of a drain: lifecycle actions kept waiting and answered, volumes let go, and what became of it said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firstbell.cloud.autoscaling import LifecycleAction
from firstbell.cloud.refusals import Refused
from firstbell.errors import Conflict, NotFound, RetryLater
from firstbell.interruption.cordon import ATTEMPTS
from firstbell.interruption.evict import pod_name
from firstbell.interruption.parsers import SHUTDOWN_SECONDS
from firstbell.interruption.plan import Ending, ending, heartbeat_at
from firstbell.outcomes import DrainIncomplete, NodeDrained, NodeDraining, PodLeft, rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstbell.capacity.cluster_view import Node
    from firstbell.capacity.drains import Drain, Hook
    from firstbell.cloud.autoscaling import AutoScaling
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.interruption.working import Pass
    from firstbell.outcomes import Outcome
    from firstbell.telemetry import Telemetry

TERMINATED = "terminated"
TERMINATED_READY_SECONDS = 300.0
"""A node whose instance EC2 terminated and that is Ready still after this long is somebody's new instance."""


@dataclass(frozen=True, slots=True)
class Finisher:
    cluster: KubernetesCluster
    autoscaling: AutoScaling
    telemetry: Telemetry
    clock: Callable[[], float]

    def keep_waiting(self, one: Pass) -> None:
        """Sends the heartbeats that are due. An action that is no more lets the instance go: little time is left."""
        for hook in one.drain.hooks:
            if hook.completed or self.clock() < heartbeat_at(hook):
                continue
            try:
                active = self.autoscaling.heartbeat(_action(one.drain, hook))
            except RetryLater as error:
                self.telemetry.log.warning("heartbeat failed", instance_id=one.drain.instance_id, error=str(error))
                continue
            now = self.clock()
            if active:
                one.drain = _with(one.drain, replace(hook, beaten_at=now))
            else:
                over = _with(one.drain, replace(hook, completed=True))
                one.drain = replace(over, deadline=min(over.deadline, now + SHUTDOWN_SECONDS))

    def look_for_the_end(self, one: Pass) -> None:
        """Sets the pass's ending where the drain is over."""
        if one.node is None:
            one.ending = Ending.VANISHED
            return
        now = self.clock()
        one.drain = replace(one.drain, not_ready_since=0.0 if one.node.ready else one.drain.not_ready_since or now)
        over = ending(one.drain, one.steps, volumes_attached=self._volumes_attached(one), now=now)
        if one.drain.state == TERMINATED:
            over = self._terminated(one, one.node, over, now)
        one.ending = over

    def answer_hooks(self, one: Pass) -> None:
        """Completes the lifecycle actions that waited for this drain. Raises RetryLater; one that is over already, or
        that AWS refuses for good, is not asked again (case 28)."""
        for hook in one.drain.hooks:
            if hook.completed:
                continue
            try:
                self.autoscaling.complete_lifecycle_action(_action(one.drain, hook))
            except Refused as error:
                one.count("LifecycleActionsRefused", pool=one.drain.pool)
                self.telemetry.log.error("lifecycle action refused", hook=hook.name, error=str(error))
            one.drain = _with(one.drain, replace(hook, completed=True))

    def _volumes_attached(self, one: Pass) -> bool:
        """Whether volumes of pods that left are still attached. Those of pods that stay can't be told apart from them
        cheaply, so where a pod with volumes stays (a DaemonSet's) nothing is waited for."""
        if one.node is None or any(step.remains for step in one.steps):
            return False
        if any(step.pod.claims and not step.pod.finished for step in one.steps):
            return False
        return any(attachment.attached for attachment in self.cluster.volume_attachments(one.node.name))

    def _terminated(self, one: Pass, node: Node, over: Ending | None, now: float) -> Ending | None:
        """EC2 ended the instance: once its node is NotReady, its volumes are let go, which also removes its pods."""
        if node.ready:
            return over if now > one.drain.noticed_at + TERMINATED_READY_SECONDS else None
        for _ in range(ATTEMPTS):
            try:
                one.node = self.cluster.taint_out_of_service(node)
                return Ending.UNREACHABLE if any(step.remains for step in one.steps) else over or Ending.DRAINED
            except Conflict:
                node = self.cluster.node(node.name)
            except NotFound:
                return Ending.VANISHED
        raise Conflict(f"node {node.name} changes all the time")


def announcement(one: Pass, node: str, cluster: str, now: float) -> NodeDraining:
    drain = one.drain
    return NodeDraining(
        outcome_id=_outcome_id(drain, "draining"),
        cluster=cluster,
        pool=drain.pool,
        seconds_since_cause=now - drain.noticed_at,
        instance_id=drain.instance_id,
        node=node,
        kind=drain.kind,
        deadline=rfc3339(drain.deadline),
        mode=one.pool.mode,
        drill=drain.drill,
    )


def conclusion(one: Pass, cluster: str, now: float) -> Outcome | None:
    """What is said at the end; None where nothing was begun, or nothing was left to do after an earlier end."""
    drain = one.drain
    left = tuple(_left(one, step.pod.uid) for step in one.steps if step.remains)
    if not (drain.evicted or drain.forced or left) and (drain.concluded or not drain.announced):
        return None
    common: dict[str, Any] = {
        "outcome_id": _outcome_id(drain, "over"),
        "cluster": cluster,
        "pool": drain.pool,
        "seconds_since_cause": now - drain.noticed_at,
        "instance_id": drain.instance_id,
        "node": drain.node,
        "kind": drain.kind,
        "ending": str(one.ending),
        "evicted": drain.evicted,
        "forced": list(drain.forced),
        "seconds_left": drain.deadline - now,
        "drill": drain.drill,
    }
    return DrainIncomplete(**common, pods=list(left)) if left else NodeDrained(**common)


def _left(one: Pass, uid: str) -> PodLeft:
    step = next(step for step in one.steps if step.pod.uid == uid)
    name = pod_name(step.pod)
    why = one.problems.get(name) or ("a disruption budget allows no eviction" if one.blocked else step.reason)
    return PodLeft(pod=name, forced=name in one.drain.forced, why=why)


def _with(drain: Drain, hook: Hook) -> Drain:
    return replace(drain, hooks=tuple(hook if h.key == hook.key else h for h in drain.hooks))


def _action(drain: Drain, hook: Hook) -> LifecycleAction:
    return LifecycleAction(group=hook.group, hook=hook.name, instance_id=drain.instance_id)


def _outcome_id(drain: Drain, stage: str) -> str:
    return f"{drain.instance_id}/{drain.noticed_at:.0f}/{stage}"
