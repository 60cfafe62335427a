"""An hour in which everything happens at once: Spot warnings, terminate hooks, duplicates, budgets, and a function that
is killed twice while it works. Each test looks at its own node."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.e2e.audit import Write, our_cordons, our_deletions, our_evictions, removed_at
from tests.e2e.cluster_api import NODES, Document, await_value
from tests.e2e.deployed import NAMESPACE, Deployed
from tests.e2e.gate import Call, Fate, Gate, Killed
from tests.e2e.workers import FUNCTION, Worker, Workers, uids

SCENES = ("spot", "hooked", "overlapped", "cut-early", "cut-late", "guarded", "observed")
PODS = 3
FOREIGN = "i-0f0f0f0f0f0f0f0f0"
GUARDED_SECONDS = 20.0
MARGIN_SECONDS = 10.0


@dataclass
class Scene:
    """One node, and what ran there when its notice came."""

    name: str
    worker: Worker
    pods: list[Document]
    noticed_at: float = 0.0

    @property
    def deadline(self) -> float:
        return self.noticed_at + 120


@dataclass
class Hour:
    school: Deployed
    workers: Workers
    scenes: dict[str, Scene]
    gate: Gate
    cut: set[str] = field(default_factory=set)

    def accepted_evictions(self, scene: Scene) -> list[Write]:
        return [e for e in our_evictions(self.school.cloud.audit_log) if e.uid in uids(scene.pods) and e.code == 201]

    def await_drained(self, scene: Scene) -> Document:
        return self.school.await_outcome("Node Drained", instance_id=scene.worker.instance_id)

    def removals(self, scene: Scene) -> list[float]:
        """When each pod of the scene was gone; fails where one is not."""
        found = [removed_at(self.school.cloud.audit_log, uid) for uid in uids(scene.pods)]
        assert None not in found
        return [at for at in found if at is not None]

    def decide(self, call: Call) -> Fate | None:
        """Two kills: before the first eviction on one node, and when another's lifecycle action is just completed."""
        late = self.scenes["cut-late"].worker.instance_id.encode()
        completes = call.operation == "query:CompleteLifecycleAction" and late in call.body
        for name, struck, fate in (
            ("cut-early", "/pods/cut-early-" in call.operation, Killed(after=False)),
            ("cut-late", completes, Killed(after=True)),
        ):
            if struck and name not in self.cut:
                self.cut.add(name)
                return fate
        return None


@pytest.fixture(scope="module")
def hour(school: Deployed) -> Iterator[Hour]:
    workers = Workers(school)
    *taken, spare = workers.take(len(SCENES) + 1)
    for name, worker in zip(SCENES, taken, strict=True):
        workers.reserve(name, worker)
        workers.start(name, PODS)
    scenes = {
        name: Scene(name, worker, workers.await_running(name, PODS)) for name, worker in zip(SCENES, taken, strict=True)
    }
    workers.guard("guarded", pods=1)
    for name in SCENES:
        workers.reserve(name, spare)
    with Gate(school.cloud, FUNCTION) as gate:
        played = Hour(school, workers, scenes, gate)
        gate.decide = played.decide
        play(played)
        yield played


def play(hour: Hour) -> None:
    workers, scenes = hour.workers, hour.scenes
    for scene in scenes.values():
        scene.noticed_at = time.time()
    workers.terminate(scenes["cut-late"].worker)
    workers.warn(scenes["cut-early"].worker.instance_id)
    workers.interrupt(scenes["spot"].worker)
    workers.terminate(scenes["hooked"].worker)
    overlapped = scenes["overlapped"].worker
    workers.recommend(overlapped)
    for _ in range(2):
        workers.warn(overlapped.instance_id, event_id="d3b0c442-98fc-4c14-9afb-f4c8996fb924")
    workers.terminate(overlapped)
    state = {"instance-id": overlapped.instance_id, "state": "shutting-down"}
    workers.say("aws.ec2", "EC2 Instance State-change Notification", state)
    workers.recommend(scenes["observed"].worker)
    workers.warn(FOREIGN)
    await_value("the function was killed twice", lambda: hour.gate.kills, lambda kills: kills == 2, timeout_seconds=60)
    guarded = scenes["guarded"]
    guarded.noticed_at = time.time() - (120 - GUARDED_SECONDS)
    workers.warn(guarded.worker.instance_id, seconds_left=GUARDED_SECONDS)


def test_a_spot_notice_cordons_first_then_moves_the_pods_and_says_so(hour: Hour) -> None:
    scene, log = hour.scenes["spot"], hour.school.cloud.audit_log
    drained = hour.await_drained(scene)
    assert (drained["ending"], drained["forced"]) == ("drained", [])
    assert len(hour.school.outcomes("Node Draining", instance_id=scene.worker.instance_id)) == 1
    evictions = hour.accepted_evictions(scene)
    assert {eviction.uid for eviction in evictions} == uids(scene.pods)
    [cordon] = our_cordons(log, scene.worker.node)
    assert cordon.at < min(eviction.at for eviction in evictions)
    assert "firstbell.dev/interruption" in {taint["key"] for taint in cordon.response["spec"]["taints"]}
    assert max(hour.removals(scene)) < scene.deadline
    successors = hour.workers.await_running(scene.name, PODS)
    assert scene.worker.node not in {pod["spec"]["nodeName"] for pod in successors}


def test_a_lifecycle_hook_is_held_until_the_pods_are_gone_and_completed_once(hour: Hour) -> None:
    """Cases 28 to 30."""
    scene = hour.scenes["hooked"]
    hour.await_drained(scene)
    [completion] = hour.workers.completions(scene.worker)
    assert completion["parameters"]["LifecycleActionResult"] == "CONTINUE"
    assert completion["time"] > max(hour.removals(scene))
    await_value("it ends", lambda: hour.workers.life(scene.worker), lambda life: "terminated" in life)


def test_whatever_arrives_for_one_instance_is_one_drain_and_one_completion(hour: Hour) -> None:
    """Case 8: a recommendation, the same warning twice, a terminate hook and a state change, all at once. The last one
    leaves so little time that pods may be forced."""
    scene, log = hour.scenes["overlapped"], hour.school.cloud.audit_log
    hour.await_drained(scene)
    for kind in ("Node Draining", "Node Drained"):
        heard = hour.school.outcomes(kind, instance_id=scene.worker.instance_id)
        assert len({outcome["outcome_id"] for outcome in heard}) == 1
    assert len(hour.workers.completions(scene.worker)) == 1
    touched = [*hour.accepted_evictions(scene), *our_deletions(log)]
    assert uids(scene.pods) <= {write.uid for write in touched}
    assert len(our_cordons(log, scene.worker.node)) == 1


@pytest.mark.parametrize("name", ["cut-early", "cut-late"])
def test_a_killed_function_loses_nothing_and_does_nothing_twice(hour: Hour, name: str) -> None:
    scene = hour.scenes[name]
    hour.await_drained(scene)
    assert sorted(eviction.uid for eviction in hour.accepted_evictions(scene)) == sorted(uids(scene.pods))
    assert max(hour.removals(scene)) < scene.deadline
    assert len(hour.workers.completions(scene.worker)) == (1 if name == "cut-late" else 0)


def test_a_budget_holds_up_its_own_pods_alone_and_only_until_the_deadline(hour: Hour) -> None:
    """Case 14."""
    scene, log = hour.scenes["guarded"], hour.school.cloud.audit_log
    drained = hour.await_drained(scene)
    forced = [deletion for deletion in our_deletions(log) if deletion.uid in uids(scene.pods)]
    free = hour.accepted_evictions(scene)
    assert (len(free), len(forced)) == (PODS - 1, 1)
    assert drained["forced"] == [f"{NAMESPACE}/{forced[0].name}"]
    assert max(eviction.at for eviction in free) < forced[0].at
    assert scene.deadline - MARGIN_SECONDS - 1 < forced[0].at < scene.deadline
    assert forced[0].request["gracePeriodSeconds"] >= 1
    assert max(hour.removals(scene)) < scene.deadline + 1


def test_a_foreign_instance_is_acknowledged_and_counted(hour: Hour) -> None:
    """Case 6."""
    await_value("it is counted", lambda: hour.workers.ignored("foreign_or_gone"), bool)


def test_a_recommendation_is_only_counted(hour: Hour) -> None:
    """Case 7."""
    scene = hour.scenes["observed"]
    await_value("it is counted", lambda: hour.workers.ignored("rebalance_observed"), lambda count: count >= 2)
    node = hour.school.cluster.get(f"{NODES}/{scene.worker.node}")
    assert not node["spec"].get("unschedulable")
    assert uids(hour.workers.await_running(scene.name, PODS)) == uids(scene.pods)


def test_when_all_is_over_no_message_is_left_and_none_was_given_up(hour: Hour) -> None:
    hour.workers.await_empty_queue()


def test_no_pod_was_touched_that_was_not_on_a_doomed_node(hour: Hour) -> None:
    log = hour.school.cloud.audit_log
    doomed = set().union(*(uids(scene.pods) for scene in hour.scenes.values() if scene.name != "observed"))
    touched = [w for w in (*our_evictions(log), *our_deletions(log)) if w.name.startswith(SCENES)]
    assert touched
    assert {write.uid for write in touched} <= doomed
