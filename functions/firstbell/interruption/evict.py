"""Taking the planned steps on pods: at once where they are many, and each answer kept for the next pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firstbell.cluster.evictions import Eviction, EvictionResult
from firstbell.interruption.plan import Action, plan_pods, terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from firstbell.capacity.cluster_view import Pod
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.interruption.plan import PodStep
    from firstbell.interruption.working import Pass
    from firstbell.telemetry import Telemetry

SLOW_RETRY_SECONDS = 60.0
"""For what an operator has to heal: two budgets on one pod (case 13), a verb that we lack (case 18)."""
NAMESPACE_RETRY_SECONDS = 10.0
"""A namespace that is being deleted ends its pods by itself (case 18)."""
SECONDS_FOR_ONE_CALL = 4.0
"""With less of the function's time left than this no further call is begun: the next pass goes on."""
OUT_OF_TIME = Eviction(EvictionResult.UNKNOWN, "not tried any more in this pass")


@dataclass(frozen=True, slots=True)
class Evictor:
    cluster: KubernetesCluster
    threads: Executor
    telemetry: Telemetry
    clock: Callable[[], float]
    time_left: Callable[[], float]

    def plan(self, one: Pass) -> None:
        """Plans the pass from the pods that are on the node now."""
        if one.node is None:
            return
        pods = self.cluster.pods_on_node(one.node.name)
        force = one.pool.interruption.at_deadline == "force"
        one.steps = plan_pods(pods, terms_of(one.drain, force=force), self.clock())

    def take_steps(self, passes: Sequence[Pass]) -> None:
        """Evicts and forces over all nodes at once, the longest graces first."""
        work = [(one, step) for one in passes for step in one.steps if step.action in (Action.EVICT, Action.FORCE)]
        work.sort(key=lambda item: item[1].action is not Action.FORCE)
        answers = list(self.threads.map(self._take, [step for _, step in work]))
        for one in passes:
            own = [(step, answer) for (of, step), answer in zip(work, answers, strict=True) if of is one]
            self._note(one, own)

    def _take(self, step: PodStep) -> Eviction:
        if self.time_left() < SECONDS_FOR_ONE_CALL:
            return OUT_OF_TIME
        if step.action is Action.FORCE:
            return self.cluster.delete_pod(step.pod, step.grace_seconds)
        return self.cluster.evict(step.pod, step.grace_seconds)

    def _note(self, one: Pass, answers: Sequence[tuple[PodStep, Eviction]]) -> None:
        now = self.clock()
        retry_at = {uid: at for uid, at in one.drain.retry_at.items() if at > now}
        evicted, forced, gone = 0, list(one.drain.forced), set()
        for step, answer in answers:
            name = pod_name(step.pod)
            match answer.result:
                case EvictionResult.ACCEPTED if step.action is Action.FORCE:
                    forced.append(name)
                case EvictionResult.ACCEPTED:
                    evicted += 1
                case EvictionResult.GONE:
                    gone.add(step.pod.uid)
                case EvictionResult.BUDGET:
                    one.blocked += 1
                case EvictionResult.THROTTLED:
                    retry_at[step.pod.uid] = now + max(1.0, answer.retry_after_seconds)
                case EvictionResult.NAMESPACE_TERMINATING:
                    retry_at[step.pod.uid] = now + NAMESPACE_RETRY_SECONDS
                case EvictionResult.MISCONFIGURED | EvictionResult.DENIED:
                    retry_at[step.pod.uid] = now + SLOW_RETRY_SECONDS
                    self._alarm(one, step, answer)
            if answer.result not in (EvictionResult.ACCEPTED, EvictionResult.GONE):
                one.problems[name] = f"{answer.result}: {answer.detail}" if answer.detail else str(answer.result)
        one.steps = tuple(step for step in one.steps if step.pod.uid not in gone)
        one.drain = replace(
            one.drain,
            evicted=one.drain.evicted + evicted,
            forced=tuple(dict.fromkeys(forced)),
            retry_at=retry_at,
            blocked_passes=one.drain.blocked_passes + 1 if one.blocked and not evicted else 0,
        )
        if evicted:
            one.count("PodsEvicted", evicted, pool=one.drain.pool)

    def _alarm(self, one: Pass, step: PodStep, answer: Eviction) -> None:
        denied = answer.result is EvictionResult.DENIED
        if denied:
            one.count("ClusterAccessDenied")
        else:
            one.count("PodsUnderTwoBudgets", pool=one.drain.pool)
        self.telemetry.log.error(
            "eviction denied" if denied else "pod is under two budgets, which no eviction passes",
            pod=pod_name(step.pod),
            node=one.drain.node,
            answer=answer.detail,
        )


def pod_name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"
