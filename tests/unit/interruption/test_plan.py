from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstbell.capacity.cluster_view import Pod
from firstbell.capacity.drains import Drain, Hook
from firstbell.capacity.resources import Resources
from firstbell.capacity.scheduling import Toleration
from firstbell.interruption.plan import (
    MARGIN_SECONDS,
    MOST_PATIENCE_SECONDS,
    Action,
    Ending,
    PodStep,
    Terms,
    ending,
    heartbeat_at,
    may_evict,
    next_pass_at,
    plan_pods,
)

T = 1_796_112_300.0
"""When the notice was sent: 08:05."""
DEADLINE = T + 120
TERMS = Terms(deadline=DEADLINE, force=True, cordoned_at=T + 2, kind="spot", retry_at={})
CRITICAL = 2_000_000_000


def pod(name: str = "nb", **changes: Any) -> Pod:
    fields: dict[str, Any] = {"uid": f"u-{name}", "name": name, "namespace": "class", "requests": Resources(pods=1)}
    return Pod(**{**fields, "node_name": "n1", "created_at": T - 600, "owner_kind": "ReplicaSet", **changes})


def plan(*pods: Pod, terms: Terms = TERMS, now: float = T + 25) -> dict[str, PodStep]:
    return {step.pod.name: step for step in plan_pods(pods, terms, now)}


def test_only_the_normal_pod_is_evicted_and_nothing_else_waited_for() -> None:
    """Case 19."""
    steps = plan(
        pod("bare-done", owner_kind="", finished=True),
        pod("job-failed", owner_kind="Job", finished=True),
        pod("agent", owner_kind="DaemonSet"),
        pod("static", owner_kind="Node", mirror=True),
        pod("normal"),
    )
    assert [name for name, step in steps.items() if step.action is Action.EVICT] == ["normal"]
    assert [name for name, step in steps.items() if step.remains] == ["normal"]
    assert all(step.reason for step in steps.values())


def test_graces_are_clamped_to_what_is_left_and_the_longest_goes_first() -> None:
    """Case 24: at T + 25 s, 85 s are left before the margin."""
    steps = plan(pod("mid", grace_seconds=600), pod("short", grace_seconds=30), pod("long", grace_seconds=21600))
    assert [(name, step.grace_seconds) for name, step in steps.items()] == [
        ("long", 85),
        ("mid", 85),
        ("short", 30),
    ]


def test_a_bare_pod_with_local_storage_is_evicted_like_any_other() -> None:
    """Case 21: an interruption does not ask; scale-in would."""
    assert plan(pod("nb", owner_kind="", local_storage=True))["nb"].action is Action.EVICT


def test_critical_pods_wait_for_the_others_but_not_into_the_end() -> None:
    dns, student = pod("dns", priority=CRITICAL), pod("student")
    assert plan(dns, student)["dns"].action is Action.WAIT
    assert plan(dns)["dns"].action is Action.EVICT
    assert plan(dns, student, now=DEADLINE - 40)["dns"].action is Action.EVICT
    assert list(plan(dns, student, now=DEADLINE - 40)) == ["student", "dns"]


def test_a_terminating_pod_is_waited_for() -> None:
    assert plan(pod(terminating=True, deletion_at=T + 60))["nb"].action is Action.WAIT


def test_at_the_last_call_what_is_there_is_deleted_with_the_grace_that_is_left() -> None:
    now = DEADLINE - MARGIN_SECONDS
    steps = plan(
        pod("stuck", grace_seconds=600),
        pod("ending", terminating=True, deletion_at=DEADLINE - 1),
        pod("hours-left", terminating=True, deletion_at=T + 21600),
        now=now,
    )
    assert (steps["stuck"].action, steps["stuck"].grace_seconds) == (Action.FORCE, 5)
    assert steps["ending"].action is Action.WAIT
    assert steps["hours-left"].action is Action.FORCE


def test_a_forced_pod_keeps_at_least_one_second() -> None:
    """Grace 0 would drop the pod from the API while its containers still run."""
    assert plan(pod(), now=DEADLINE + 500)["nb"].grace_seconds == 1


def test_what_is_to_be_left_is_only_asked() -> None:
    steps = plan(pod(), terms=replace(TERMS, force=False), now=DEADLINE - 3)
    assert (steps["nb"].action, steps["nb"].grace_seconds) == (Action.EVICT, 1)


def test_a_pod_that_was_refused_is_retried_slowly_and_forced_in_the_end() -> None:
    """Case 13: two budgets."""
    terms = replace(TERMS, retry_at={"u-nb": T + 85})
    assert plan(pod(), terms=terms)["nb"].action is Action.WAIT
    assert plan(pod(), terms=terms, now=T + 86)["nb"].action is Action.EVICT
    assert plan(pod(), terms=replace(terms, retry_at={"u-nb": T + 200}), now=T + 111)["nb"].action is Action.FORCE


def test_a_pod_that_tolerates_the_cordon_does_not_keep_the_drain_going_for_ever() -> None:
    everything = (Toleration(operator="Exists"),)
    assert plan(pod(tolerations=everything, created_at=T + 9))["nb"].action is Action.SKIP
    assert plan(pod(tolerations=everything))["nb"].action is Action.EVICT
    assert plan(pod(created_at=T + 9))["nb"].action is Action.EVICT


PODS = st.builds(
    pod,
    name=st.text("abcdef", min_size=1, max_size=6),
    owner_kind=st.sampled_from(["", "ReplicaSet", "DaemonSet", "Job", "StatefulSet"]),
    mirror=st.booleans(),
    finished=st.booleans(),
    terminating=st.booleans(),
    deletion_at=st.floats(T, T + 30_000),
    grace_seconds=st.integers(0, 30_000),
    priority=st.sampled_from([0, 10, CRITICAL, CRITICAL + 1000]),
)
NOW = st.floats(T, DEADLINE + 300)


@given(st.lists(PODS, max_size=8), NOW, st.booleans())
def test_every_pod_gets_one_step_with_a_reason(pods: list[Pod], now: float, force: bool) -> None:
    steps = plan_pods(pods, replace(TERMS, force=force), now)
    assert sorted(step.pod.uid for step in steps) == sorted(p.uid for p in pods)
    assert all(step.reason for step in steps)


@given(st.lists(PODS, max_size=8), NOW, st.booleans())
def test_no_grace_outlasts_the_instance_or_exceeds_the_pods_own(pods: list[Pod], now: float, force: bool) -> None:
    for step in plan_pods(pods, replace(TERMS, force=force), now):
        if step.action in (Action.EVICT, Action.FORCE):
            assert step.grace_seconds >= 1
            assert step.grace_seconds == 1 or now + step.grace_seconds <= DEADLINE
        if step.action is Action.EVICT:
            assert step.grace_seconds <= max(1, step.pod.grace_seconds)


@given(st.lists(PODS, max_size=8), NOW)
def test_nothing_is_forced_before_the_last_call_nor_where_it_is_to_be_left(pods: list[Pod], now: float) -> None:
    assert all(step.action is not Action.FORCE for step in plan_pods(pods, replace(TERMS, force=False), now))
    before = min(now, TERMS.last_call - 0.5)
    assert all(step.action is not Action.FORCE for step in plan_pods(pods, TERMS, before))


@given(st.lists(PODS, max_size=8), NOW)
def test_a_drain_of_what_can_go_never_waits_for_critical_pods_alone(pods: list[Pod], now: float) -> None:
    """Some step is always taken or under way: a plan of nothing but "after the others" would never end."""
    remaining = [step for step in plan_pods(pods, TERMS, now) if step.remains]
    assert not remaining or any(step.pod.terminating or step.action is not Action.WAIT for step in remaining)


def drain(**changes: Any) -> Drain:
    fields: dict[str, Any] = {"instance_id": "i-0aa", "kind": "spot", "noticed_at": T, "pool": "p"}
    return Drain(**{**fields, "deadline": DEADLINE, "cordoned_at": T + 2, **changes})


@pytest.mark.parametrize(
    ("now", "notices_waiting", "expected"),
    [
        (T + 3, False, False),
        (T + 5, False, True),
        (T + 5, True, False),
        (T + 2 + MOST_PATIENCE_SECONDS, True, True),
        (DEADLINE - 59, True, True),
    ],
)
def test_evictions_wait_for_the_storm_to_be_cordoned(now: float, notices_waiting: bool, expected: bool) -> None:
    assert may_evict(drain(), notices_waiting=notices_waiting, now=now) is expected


def test_a_notice_that_comes_late_is_evicted_at_once() -> None:
    assert may_evict(drain(cordoned_at=T + 61), notices_waiting=True, now=T + 61)


def steps_of(*pods: Pod, now: float = T + 25) -> tuple[PodStep, ...]:
    return plan_pods(pods, TERMS, now)


def test_a_drain_is_over_when_only_skipped_pods_are_there() -> None:
    steps = steps_of(pod("agent", owner_kind="DaemonSet"))
    assert ending(drain(), steps, volumes_attached=False, now=T + 25) is Ending.DRAINED


def test_volumes_of_pods_that_left_are_waited_for_until_the_last_call() -> None:
    assert ending(drain(), (), volumes_attached=True, now=T + 25) is None
    assert ending(drain(), (), volumes_attached=True, now=DEADLINE - MARGIN_SECONDS) is Ending.DRAINED


def test_a_drain_with_pods_goes_on_until_the_deadline() -> None:
    assert ending(drain(), steps_of(pod()), volumes_attached=False, now=DEADLINE - 0.1) is None
    assert ending(drain(), steps_of(pod()), volumes_attached=False, now=DEADLINE) is Ending.DEADLINE


def test_a_dead_kubelet_ends_the_drain_after_a_short_wait() -> None:
    dead = drain(not_ready_since=T + 10)
    assert ending(dead, steps_of(pod()), volumes_attached=False, now=T + 39) is None
    assert ending(dead, steps_of(pod()), volumes_attached=False, now=T + 40) is Ending.UNREACHABLE


HOOK = Hook("notebook-a", "firstbell-drain", "t1", heartbeat_seconds=300, beaten_at=T)


def test_the_heartbeat_comes_below_half_the_timeout() -> None:
    """Case 30."""
    assert T < heartbeat_at(HOOK) < T + 150


def test_the_next_pass_never_misses_a_heartbeat_or_the_last_call() -> None:
    slow = drain(deadline=T + 7200, hooks=(HOOK,))
    assert next_pass_at(slow, steps_of(pod()), blocked=0, now=T + 110) == heartbeat_at(HOOK)
    done = replace(slow, hooks=(replace(HOOK, completed=True),))
    assert next_pass_at(done, steps_of(pod()), blocked=0, now=T + 110) > heartbeat_at(HOOK)
    assert next_pass_at(drain(), steps_of(pod()), blocked=0, now=DEADLINE - 12) == DEADLINE - MARGIN_SECONDS
    assert next_pass_at(drain(), steps_of(pod()), blocked=0, now=DEADLINE - 9) <= DEADLINE


def test_budgets_are_asked_again_ever_more_slowly() -> None:
    """Case 14."""
    waits = [
        next_pass_at(drain(deadline=T + 7200, blocked_passes=n), steps_of(pod()), blocked=1, now=T + 25) - (T + 25)
        for n in range(6)
    ]
    assert waits == [4, 8, 16, 30, 30, 30]


def test_a_pod_that_ends_soon_is_looked_at_when_it_has_ended() -> None:
    ending_soon = steps_of(pod(terminating=True, deletion_at=T + 210), now=T + 200)
    slow = drain(deadline=T + 7200)
    assert next_pass_at(slow, ending_soon, blocked=0, now=T + 200) == T + 211


@given(st.lists(PODS, max_size=5), st.floats(T + 2, DEADLINE - 1.5), st.integers(0, 20))
def test_a_drain_always_wakes_before_its_deadline_passes(pods: list[Pod], now: float, blocked_passes: int) -> None:
    one = drain(blocked_passes=blocked_passes, not_ready_since=T, hooks=(HOOK,))
    at = next_pass_at(one, plan_pods(pods, TERMS, now), blocked=blocked_passes, now=now)
    assert now + 1 <= at <= max(DEADLINE, now + 1)
    assert now >= TERMS.last_call or at <= max(TERMS.last_call, now + 1)
