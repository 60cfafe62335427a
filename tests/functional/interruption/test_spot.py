"""From a Spot notice to a drained node."""

from __future__ import annotations

from typing import Any

import pytest

from firstbell.capacity.drains import Phase
from firstbell.capacity.pools import InterruptionPolicy
from firstbell.cluster.cordons import mark_of
from firstbell.cluster.evictions import Eviction, EvictionResult
from tests.functional.interruption.scene import TARGETS, Scene, T, node, pod


def test_a_notice_ends_in_a_drained_node_and_an_empty_queue() -> None:
    scene = Scene(pods=3)
    scene.spot()
    scene.run()
    assert scene.pods_left() == []
    assert scene.drain().phase is Phase.DONE
    assert scene.queue.messages == []
    [draining], [drained] = scene.said("Node Draining"), scene.said("Node Drained")
    assert (draining["node"], draining["kind"], draining["mode"]) == ("n1", "spot", "act")
    assert (drained["ending"], drained["evicted"], drained["forced"]) == ("drained", 3, [])
    assert scene.said("Drain Incomplete") == []
    assert scene.settled_at < T + 15


def test_the_first_pass_only_cordons() -> None:
    scene = Scene(nodes=3)
    scene.spot("i-01", "i-02", "i-03")
    assert scene.invoke() == []
    nodes = scene.cluster.node_by_name.values()
    assert all(n.unschedulable and "node.kubernetes.io/exclude-from-external-load-balancers" in n.labels for n in nodes)
    marks = [mark_of(n, "interruption") for n in nodes]
    assert [(m.kind, m.deadline) for m in marks if m] == [("spot", T + 120)] * 3
    assert scene.evicted() == []
    names = [call[0] for call in scene.calls("cordon", "send", "deregister")]
    assert names.index("deregister") > 2, "the whole batch is cordoned before anything else"
    assert [(m.visible_at - T) for m in scene.queue.messages] == [3, 3, 3]


def test_target_groups_are_told_at_the_cordon() -> None:
    scene = Scene()
    scene.spot()
    scene.invoke()
    assert scene.load_balancers.deregistered == [(TARGETS[0], "i-01")]
    scene.run()
    assert scene.load_balancers.deregistered == [(TARGETS[0], "i-01")]


def test_evictions_wait_while_the_queue_is_behind_but_not_for_ever() -> None:
    """A storm is split over invocations; a pod must not move onto a node whose notice still waits."""
    scene = Scene()
    scene.spot()
    scene.invoke()
    scene.queue.notices_waiting = 30
    for late in range(1, 9):
        scene.now = T + 3 + 3 * late
        scene.invoke()
        if scene.evicted():
            break
    assert T + 20 <= scene.now <= T + 26


def test_a_pass_in_time_asks_nobody_before_it_evicts() -> None:
    scene = Scene(nodes=3)
    scene.spot("i-01", "i-02", "i-03")
    scene.invoke()
    scene.now = T + 3
    for _ in range(3):
        scene.invoke(most=1)
    assert len(scene.evicted()) == 6
    assert scene.calls("waiting") == []


def test_a_notice_with_little_time_left_is_evicted_at_once() -> None:
    scene = Scene()
    scene.spot()
    scene.now = T + 61
    scene.queue.notices_waiting = 30
    scene.invoke()
    assert len(scene.evicted()) == 2


def test_a_storm_asks_the_queue_once_an_invocation() -> None:
    scene = Scene(nodes=5)
    scene.spot(*(f"i-0{n}" for n in range(1, 6)))
    scene.invoke()
    scene.now = T + 5
    scene.invoke()
    assert len(scene.calls("waiting")) == 1
    assert len(scene.calls("nodes_of_instances", "describe")) == 3, "a pass under way knows its nodes and its pool"


def test_the_same_instance_heard_of_four_times_is_drained_once() -> None:
    """Case 8: the same EventBridge id twice in one batch, rebalance, Spot, state change and hook for one instance."""
    scene = Scene(policy=InterruptionPolicy(rebalance="drain"))
    scene.rebalance()
    scene.spot(event="twice")
    scene.spot(event="twice")
    scene.terminate()
    scene.state("shutting-down")
    scene.run()
    assert len(scene.said("Node Draining")) == len(scene.said("Node Drained")) == 1
    assert len(scene.autoscaling.completed) == 1
    assert scene.evicted() == ["u-nb-1-1", "u-nb-1-2"]
    assert len(scene.calls("cordon")) == 1
    assert scene.queue.messages == []


def test_events_an_hour_apart_are_one_drain_and_one_completion() -> None:
    """Case 8: Spot, and an hour later its hook and its end, while the node is still there."""
    scene = Scene()
    scene.spot()
    scene.run()
    scene.now = T + 3600
    scene.terminate()
    scene.run(until=T + 9000)
    scene.spot()
    scene.run(until=T + 9000)
    assert len(scene.said("Node Draining")) == len(scene.said("Node Drained")) == 1
    assert len(scene.autoscaling.completed) == 1
    assert scene.queue.messages == []


@pytest.mark.parametrize(
    "name", ["ip-10-0-0-5.us-west-2.compute.internal", "i-01", "i-01.aws.example.com", "ip-10-0-0-5", "worker-7"]
)
def test_a_node_is_found_by_its_instance_whatever_its_name(name: str) -> None:
    """Case 10."""
    scene = Scene(pods=0)
    scene.cluster.remove_node("n1")
    scene.cluster.add_node(node(1, name=name, labels={"kubernetes.io/hostname": "something-else"}))
    scene.cluster.add_pod(pod("nb", node_name=name))
    scene.cluster.add_node(node(2, name="other", instance_id="i-012"))
    scene.spot()
    scene.run()
    assert scene.pods_left() == []
    assert {call[1] for call in scene.calls("cordon", "pods_on_node")} == {name}


def test_a_foreign_or_vanished_instance_is_acknowledged_once() -> None:
    """Case 6."""
    scene = Scene()
    scene.spot("i-0f")
    scene.cluster.add_node(node(9, name="karpenters", instance_id="i-09"))
    scene.spot("i-09")
    scene.cluster.remove_node("n1")
    scene.spot("i-01")
    assert scene.invoke() == []
    assert scene.queue.messages == []
    assert scene.ignored("foreign_or_gone") == 3
    assert not scene.cluster.node_by_name["karpenters"].unschedulable
    assert scene.calls("write") == []


def test_finished_daemonset_and_mirror_pods_are_neither_evicted_nor_waited_for() -> None:
    """Case 19."""
    scene = Scene(pods=1)
    others: dict[str, dict[str, Any]] = {
        "done": {"finished": True, "owner_kind": ""},
        "agent": {"owner_kind": "DaemonSet"},
        "static": {"mirror": True, "owner_kind": "Node"},
    }
    for name, changes in others.items():
        scene.cluster.add_pod(pod(name, **changes))
    scene.spot()
    scene.run()
    assert scene.evicted() == ["u-nb-1-1"]
    assert len(scene.said("Node Drained")) == 1


def test_a_bare_pod_with_local_storage_is_evicted_and_counted() -> None:
    """Case 21: an interruption does not ask."""
    scene = Scene(pods=0)
    scene.cluster.add_pod(pod("jupyter-ada", owner_kind="", local_storage=True))
    scene.spot()
    scene.run()
    assert scene.evicted() == ["u-jupyter-ada"]
    assert scene.said("Node Drained")[0]["evicted"] == 1


def test_long_graces_are_clamped_and_go_first() -> None:
    """Case 24."""
    scene = Scene(pods=0)
    for grace in (30, 600, 21600):
        scene.cluster.add_pod(pod(f"nb-{grace}", grace_seconds=grace))
    scene.spot()
    scene.now = T + 22
    scene.invoke()
    scene.now = T + 25
    scene.invoke()
    assert scene.calls("evict") == [("evict", "u-nb-21600", 85), ("evict", "u-nb-600", 85), ("evict", "u-nb-30", 30)]


def test_one_budget_that_allows_nothing_holds_up_nobody_else() -> None:
    """Case 14: nine pods go at once; the tenth is asked again ever more slowly, and forced at the end."""
    scene = Scene(pods=10)
    scene.cluster.budget_blocked.add("u-nb-1-1")
    scene.spot()
    scene.run(until=T + 6)
    assert scene.pods_left() == ["nb-1-1"]
    scene.run()
    asked = [uid for uid in scene.evicted() if uid == "u-nb-1-1"]
    assert 4 <= len(asked) <= 12
    assert [call[1:] for call in scene.calls("delete_pod")] == [("u-nb-1-1", 5)]
    [drained] = scene.said("Node Drained")
    assert drained["forced"] == ["class/nb-1-1"]
    assert T + 110 <= scene.settled_at <= T + 121
    assert scene.telemetry.total("PodsForced") == 1


def test_a_crash_looping_pod_under_a_budget_is_named() -> None:
    """Case 15: the budget counts healthy pods only; where nothing is forced the pod is left, and named."""
    scene = Scene(pods=2, policy=InterruptionPolicy(at_deadline="leave"))
    scene.cluster.budget_blocked.add("u-nb-1-2")
    scene.spot()
    scene.run()
    [incomplete] = scene.said("Drain Incomplete")
    assert [(p["pod"], p["forced"]) for p in incomplete["pods"]] == [("class/nb-1-2", False)]
    assert "budget" in incomplete["pods"][0]["why"]
    assert incomplete["ending"] == "deadline"
    assert scene.calls("delete_pod") == []
    assert scene.queue.messages == []


def test_throttling_honours_retry_after() -> None:
    """Case 14, its second run: a plain 429 with Retry-After."""
    scene = Scene(pods=2)
    scene.cluster.results["u-nb-1-1"] = Eviction(EvictionResult.THROTTLED, "too many requests", 12)
    scene.spot()
    scene.run(until=T + 4)
    scene.cluster.results.clear()
    scene.run(until=T + 14.5)
    assert scene.evicted().count("u-nb-1-1") == 1
    scene.run()
    assert scene.evicted().count("u-nb-1-1") == 2
    assert scene.pods_left() == []


def test_a_pod_under_two_budgets_is_reported_and_not_hot_looped() -> None:
    """Case 13."""
    scene = Scene(pods=3)
    scene.cluster.results["u-nb-1-1"] = Eviction(EvictionResult.MISCONFIGURED, "more than one PodDisruptionBudget")
    scene.spot()
    scene.run()
    assert scene.evicted().count("u-nb-1-1") == 2
    assert scene.telemetry.total("PodsUnderTwoBudgets") == 2
    assert scene.said("Node Drained")[0]["forced"] == ["class/nb-1-1"]
    assert scene.pods_left() == []


def test_a_pod_of_a_deleted_namespace_is_waited_for_and_a_missing_right_alarms() -> None:
    """Case 18."""
    scene = Scene(pods=2)
    scene.cluster.results["u-nb-1-1"] = Eviction(EvictionResult.NAMESPACE_TERMINATING)
    scene.cluster.results["u-nb-1-2"] = Eviction(EvictionResult.DENIED, "pods/eviction is forbidden")
    scene.spot()
    scene.run(until=T + 20)
    assert scene.telemetry.total("ClusterAccessDenied") == 1
    scene.cluster.finish("u-nb-1-1")
    scene.cluster.results.clear()
    scene.run()
    assert scene.pods_left() == []


def test_a_pod_is_gone_when_its_uid_is_not_when_its_name_is() -> None:
    """Case 17: web-0 comes back on another node under another UID."""
    scene = Scene(nodes=2, pods=0)
    scene.cluster.add_pod(pod("web-0", uid="u1", owner_kind="StatefulSet"))
    scene.spot()
    scene.run(until=T + 3)
    scene.cluster.finish("u1")
    scene.cluster.add_pod(pod("web-0", 2, uid="u2", owner_kind="StatefulSet"))
    scene.run()
    assert [call[1] for call in scene.calls("evict", "delete_pod")] == ["u1"]
    assert "u2" in scene.cluster.pod_by_uid
    assert len(scene.said("Node Drained")) == 1


def test_gone_means_that_the_uid_is_gone_not_that_the_eviction_was_accepted() -> None:
    scene = Scene(pods=1)
    scene.cluster.lingering.add("u-nb-1-1")
    scene.spot()
    scene.run(until=T + 30)
    assert scene.said("Node Drained") == []
    scene.cluster.finish("u-nb-1-1")
    scene.run()
    assert scene.evicted() == ["u-nb-1-1"]
    assert len(scene.said("Node Drained")) == 1


def test_a_pod_that_outlasts_the_instance_is_forced_and_named() -> None:
    """Terminating pods with hours left included."""
    scene = Scene(pods=0)
    scene.cluster.lingering.add("u-nb")
    scene.cluster.add_pod(pod("nb", terminating=True, deletion_at=T + 21600))
    scene.spot()
    scene.run()
    [incomplete] = scene.said("Drain Incomplete")
    assert [(p["pod"], p["forced"]) for p in incomplete["pods"]] == [("class/nb", True)]
    assert scene.calls("delete_pod") == [("delete_pod", "u-nb", 5)]
    assert scene.settled_at <= T + 121


def test_critical_pods_go_last() -> None:
    scene = Scene(pods=2)
    scene.cluster.add_pod(pod("dns", namespace="kube-system", priority=2_000_000_000))
    scene.spot()
    scene.run()
    assert scene.evicted()[-1] == "u-dns"
    assert scene.pods_left() == []


def test_a_dead_kubelet_ends_the_drain_after_a_short_wait() -> None:
    scene = Scene(pods=2)
    scene.cluster.lingering.update({"u-nb-1-1", "u-nb-1-2"})
    scene.spot()
    scene.invoke()
    scene.change_node(ready=False)
    scene.run()
    [incomplete] = scene.said("Drain Incomplete")
    assert incomplete["ending"] == "unreachable"
    assert len(incomplete["pods"]) == 2
    assert scene.settled_at < T + 60


def test_a_node_that_vanishes_in_the_middle_ends_its_drain() -> None:
    scene = Scene(pods=2)
    scene.cluster.lingering.update({"u-nb-1-1", "u-nb-1-2"})
    scene.spot()
    scene.run(until=T + 5)
    scene.cluster.remove_node("n1")
    scene.run()
    assert scene.said("Node Drained")[0]["ending"] == "vanished"
    assert scene.queue.messages == []


def test_a_late_notice_of_an_instance_that_lives_on_forces_nothing() -> None:
    scene = Scene()
    scene.spot()
    scene.now = T + 3600
    scene.run(until=T + 9000)
    assert scene.ignored("expired") == 1
    assert scene.calls("evict", "delete_pod") == []


def test_somebody_elses_cordon_stays_when_ours_is_added() -> None:
    scene = Scene(pods=0)
    scene.change_node(unschedulable=True)
    scene.spot()
    scene.run()
    assert scene.cluster.node_by_name["n1"].annotations["firstbell.dev/interruption-set"] == "label"


def test_what_does_not_fit_into_one_invocation_goes_on_in_the_next() -> None:
    scene = Scene(pods=5)
    scene.spot()
    scene.invoke()
    scene.now, scene.seconds_left = T + 3, 2.0
    scene.invoke()
    assert scene.evicted() == []
    scene.seconds_left = 15.0
    scene.run()
    assert scene.pods_left() == []


def test_a_pool_in_observe_is_planned_and_reported_but_not_touched() -> None:
    scene = Scene(pool_options={"mode": "observe"})
    scene.spot()
    scene.terminate()
    scene.run()
    assert [one["mode"] for one in scene.said("Node Draining")] == ["observe", "observe"]
    writes = (
        "cordon",
        "evict",
        "delete_pod",
        "complete_lifecycle_action",
        "heartbeat",
        "detach",
        "deregister",
        "write",
    )
    assert scene.calls("write", *writes) == []


def test_a_pause_stops_a_drain_and_resuming_carries_it_on() -> None:
    scene = Scene()
    scene.spot()
    scene.invoke()
    scene.ledger.paused = True
    scene.run(until=T + 40)
    assert scene.evicted() == []
    scene.ledger.paused = False
    scene.run()
    assert scene.pods_left() == []


def test_a_silent_bus_holds_up_no_drain_and_everything_is_said_in_the_end() -> None:
    from firstbell.errors import RetryLater

    scene = Scene()
    scene.faults.fail("publish", RetryLater("bus"), times=3)
    scene.spot()
    scene.run()
    assert scene.settled_at < T + 60
    assert len(scene.said("Node Draining")) == len(scene.said("Node Drained")) == 1


def test_a_load_balancer_that_does_not_answer_holds_up_no_drain() -> None:
    from firstbell.errors import RetryLater

    scene = Scene()
    scene.faults.fail("deregister", RetryLater("elb"))
    scene.spot()
    scene.run()
    assert scene.pods_left() == []
    assert scene.load_balancers.deregistered == [(TARGETS[0], "i-01")]
