"""Lifecycle actions: ours only, kept waiting, answered once."""

from __future__ import annotations

import pytest

from firstbell.cloud.refusals import Refused
from firstbell.errors import RetryLater
from tests.functional.interruption.scene import GROUP, Scene, T, pod


@pytest.mark.parametrize("flat", [False, True])
def test_a_hook_is_completed_when_the_pods_are_gone(flat: bool) -> None:
    """Case 2: the same drain and completion whether the notice came flat or through EventBridge."""
    scene = Scene(pods=2)
    scene.cluster.lingering.add("u-nb-1-1")
    scene.terminate(flat=flat)
    scene.run(until=T + 30)
    assert scene.autoscaling.completed == []
    scene.cluster.finish("u-nb-1-1")
    scene.run()
    [(action, result)] = scene.autoscaling.completed
    assert (action.group, action.instance_id, result) == (GROUP, "i-01", "CONTINUE")
    assert scene.pods_left() == []


def test_an_instance_that_never_joined_is_let_go_at_once() -> None:
    """Case 11."""
    scene = Scene()
    scene.cluster.remove_node("n1")
    scene.terminate()
    scene.invoke()
    assert len(scene.autoscaling.completed) == 1
    assert scene.queue.messages == []
    assert scene.bus.events == []


def test_a_hook_that_is_not_ours_is_not_touched() -> None:
    scene = Scene()
    scene.terminate(hook="somebody-elses")
    scene.invoke()
    assert scene.autoscaling.completed == []
    assert scene.ignored("foreign_hook") == 1
    assert not scene.cluster.node_by_name["n1"].unschedulable
    assert scene.queue.messages == []


def test_a_hook_of_a_group_that_nobody_listed_is_not_touched() -> None:
    scene = Scene()
    scene.put(
        "EC2 Instance-terminate Lifecycle Action",
        {
            "AutoScalingGroupName": "somebody-elses",
            "LifecycleHookName": "firstbell-drain",
            "EC2InstanceId": "i-0f",
            "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        },
        source="aws.autoscaling",
    )
    scene.invoke()
    assert scene.calls("complete_lifecycle_action", "lifecycle_hooks") == []
    assert scene.ignored("foreign_or_gone") == 1


def test_heartbeats_come_below_half_the_timeout_until_the_pods_are_gone() -> None:
    """Case 30: heartbeat timeout 300 s, and a drain that takes 20 minutes."""
    scene = Scene(pods=1)
    scene.cluster.lingering.add("u-nb-1-1")
    scene.terminate()
    beats = []
    while scene.now < T + 1200:
        before = len(scene.calls("heartbeat"))
        scene.run(until=scene.now + 1)
        if len(scene.calls("heartbeat")) > before:
            beats.append(scene.now)
    gaps = [later - earlier for earlier, later in zip([T, *beats], [*beats, T + 1200], strict=True)]
    assert max(gaps) < 150
    assert len(beats) <= 12
    scene.cluster.finish("u-nb-1-1")
    scene.run()
    assert len(scene.autoscaling.completed) == 1


def test_no_heartbeat_follows_the_completion() -> None:
    """Case 29."""
    scene = Scene(pods=1)
    scene.terminate()
    scene.run()
    scene.now = T + 1000
    scene.hook_notice()
    scene.run(until=T + 5000)
    assert scene.calls("heartbeat") == []
    assert len(scene.autoscaling.completed) == 1
    assert scene.queue.messages == []


def test_at_the_hooks_own_end_the_rest_is_deleted_and_the_action_completed_by_us() -> None:
    """Case 30: the cap is the hook's global timeout."""
    scene = Scene(pods=1, heartbeat_seconds=30)
    scene.cluster.budget_blocked.add("u-nb-1-1")
    scene.terminate()
    scene.run(until=T + 3100)
    assert scene.calls("delete_pod") == [("delete_pod", "u-nb-1-1", 5)]
    assert scene.said("Node Drained")[0]["forced"] == ["class/nb-1-1"]
    assert len(scene.autoscaling.completed) == 1
    assert scene.settled_at < T + 3000


def test_an_action_that_is_over_already_is_success() -> None:
    """Case 28, its first half."""
    scene = Scene(pods=1)
    scene.terminate()
    scene.autoscaling.active_actions.clear()
    scene.run()
    assert scene.queue.messages == []
    assert len(scene.said("Node Drained")) == 1


def test_a_throttled_completion_is_tried_again() -> None:
    """Case 28, its second half."""
    scene = Scene(pods=1)
    scene.faults.fail("complete_lifecycle_action", RetryLater("throttled"), times=2)
    scene.terminate()
    scene.run()
    assert len(scene.autoscaling.completed) == 1
    assert scene.queue.messages == []


def test_a_completion_that_aws_refuses_for_good_alarms_and_does_not_go_round() -> None:
    """Case 28: any other ValidationError, such as the wrong name of a hook."""
    scene = Scene(pods=1)
    refusal = Refused("autoscaling:CompleteLifecycleAction", "ValidationError", "No such hook")
    scene.faults.fail("complete_lifecycle_action", refusal, times=9)
    scene.terminate()
    scene.run()
    assert scene.telemetry.total("LifecycleActionsRefused") == 1
    assert scene.queue.messages == []


def test_an_action_that_somebody_else_ended_leaves_little_time() -> None:
    """The instance goes then, whatever runs on it: what is still there is deleted while it can be."""
    scene = Scene(pods=1)
    scene.cluster.budget_blocked.add("u-nb-1-1")
    scene.terminate()
    scene.run(until=T + 60)
    scene.autoscaling.active_actions.clear()
    scene.run(until=T + 400)
    assert scene.pods_left() == []
    assert scene.queue.messages == []


@pytest.mark.parametrize("state", ["shutting-down", "stopping"])
def test_a_state_change_is_drained_fast_and_answers_no_hook(state: str) -> None:
    """Case 32: EC2 waits for nobody."""
    scene = Scene(pods=2)
    scene.cluster.budget_blocked.add("u-nb-1-2")
    scene.state(state)
    scene.run()
    assert scene.pods_left() == []
    assert scene.settled_at <= T + 31
    assert scene.calls("complete_lifecycle_action", "heartbeat") == []


@pytest.mark.parametrize("state", ["running", "pending"])
def test_a_state_that_takes_nothing_away_is_ignored(state: str) -> None:
    """Case 32."""
    scene = Scene()
    scene.state(state)
    scene.invoke()
    assert scene.queue.messages == []
    assert scene.calls("cordon", "hide") == []


def test_a_terminated_instance_lets_its_volumes_go_once_its_node_is_not_ready() -> None:
    scene = Scene(pods=1)
    scene.cluster.lingering.add("u-nb-1-1")
    scene.state("terminated")
    scene.run(until=T + 20)
    node = scene.cluster.node_by_name["n1"]
    assert not any(taint.key == "node.kubernetes.io/out-of-service" for taint in node.taints)
    scene.change_node(ready=False, unschedulable=True, annotations=node.annotations, taints=node.taints)
    scene.run()
    taints = {taint.key: taint for taint in scene.cluster.node_by_name["n1"].taints}
    assert taints["node.kubernetes.io/out-of-service"].effect == "NoExecute"
    assert scene.queue.messages == []


def test_a_stopped_instance_may_come_back_so_its_volumes_stay() -> None:
    scene = Scene(pods=1)
    scene.state("stopped")
    scene.change_node(ready=False)
    scene.run()
    assert scene.calls("taint_out_of_service") == []


def test_a_drain_waits_for_the_volumes_of_the_pods_that_left() -> None:
    from firstbell.cluster.volumes import VolumeAttachment

    scene = Scene(pods=0)
    scene.cluster.add_pod(pod("db", claims=("data",)))
    scene.cluster.attachments["n1"] = [VolumeAttachment("va", "pv", attached=True)]
    scene.terminate()
    scene.run(until=T + 60)
    assert scene.pods_left() == []
    assert scene.autoscaling.completed == []
    scene.cluster.attachments.clear()
    scene.run()
    assert len(scene.autoscaling.completed) == 1


def test_volumes_of_a_daemonset_are_not_waited_for() -> None:
    from firstbell.cluster.volumes import VolumeAttachment

    scene = Scene(pods=1)
    scene.cluster.add_pod(pod("agent", owner_kind="DaemonSet", claims=("cache",)))
    scene.cluster.attachments["n1"] = [VolumeAttachment("va", "pv", attached=True)]
    scene.terminate()
    scene.run(until=T + 30)
    assert len(scene.autoscaling.completed) == 1
