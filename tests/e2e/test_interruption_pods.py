"""Every kind of pod that holds up other drainers, each on a doomed node of its own, all at the same time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from localcloud.controlplane.plane import DEAD_KUBELET_LABEL
from tests.e2e.audit import Write, our_deletions, our_evictions, removed_at
from tests.e2e.cluster_api import NODES, Document, await_value
from tests.e2e.deployed import NAMESPACE, Deployed
from tests.e2e.workers import PODS, Worker, Workers, is_running, pod_spec, replica_set, uids

pytestmark = pytest.mark.long

SCENES = ("two-budgets", "crashing", "mixed", "web", "leaving", "patient", "unplugged")
LITTLE_SECONDS = 45.0
"""Left to the nodes whose pods have to be forced."""
CROWD_PODS = 600
"""More than a page of a list (500)."""
PATIENT_SECONDS = 3600


@dataclass
class Afternoon:
    school: Deployed
    workers: Workers
    nodes: dict[str, Worker]
    before: dict[str, list[Document]] = field(default_factory=dict)
    """What ran on each node when its notice came."""
    deadlines: dict[str, float] = field(default_factory=dict)

    def end(self, scene: str, kind: str = "Node Drained") -> Document:
        instance_id = self.nodes[scene].instance_id
        return self.school.await_outcome(kind, instance_id=instance_id, timeout_seconds=150)

    def touched(self, scene: str) -> list[Write]:
        """Our evictions and deletions of pods that were on the scene's node, refused ones included."""
        log = self.school.cloud.audit_log
        return [w for w in (*our_evictions(log), *our_deletions(log)) if w.uid in uids(self.before[scene])]

    def gone(self, scene: str) -> bool:
        log, deadline = self.school.cloud.audit_log, self.deadlines[scene]
        removals = [removed_at(log, uid) for uid in uids(self.before[scene])]
        return all(at is not None and at < deadline + 1 for at in removals)


@pytest.fixture(scope="module")
def afternoon(school: Deployed) -> Iterator[Afternoon]:
    workers = Workers(school)
    *taken, spare = workers.take(len(SCENES) + 1)
    played = Afternoon(school, workers, dict(zip(SCENES, taken, strict=True)))
    for scene, worker in played.nodes.items():
        workers.reserve(scene, worker)
    set_the_stage(played)
    played.before = {scene: workers.on_node(worker) for scene, worker in played.nodes.items()}
    for scene in SCENES:
        workers.reserve(scene, spare)
    for scene, worker in played.nodes.items():
        seconds = LITTLE_SECONDS if scene in ("two-budgets", "crashing", "patient") else 120
        played.deadlines[scene] = time.time() + seconds
        workers.warn(worker.instance_id, seconds_left=seconds)
    yield played
    school.cluster.delete(
        f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets/crowd", {"propagationPolicy": "Background"}
    )


def set_the_stage(afternoon: Afternoon) -> None:
    workers, api = afternoon.workers, afternoon.school.cluster
    afternoon.school.cluster.merge(
        f"{NODES}/{afternoon.nodes['unplugged'].node}", {"metadata": {"labels": {DEAD_KUBELET_LABEL: "alive"}}}
    )
    for scene in ("two-budgets", "crashing", "unplugged"):
        workers.start(scene, 3)
    workers.start("patient", 2, grace_seconds=PATIENT_SECONDS)
    create(api, "apps/v1", "statefulsets", stateful_set("web"))
    create(api, "batch/v1", "jobs", job("working", "mixed", "infinity"))
    create(api, "batch/v1", "jobs", job("finished", "mixed", "0"))
    bare = pod_spec("mixed", volumes=[{"name": "scratch", "emptyDir": {}}])
    api.create(PODS, {"metadata": {"name": "bare", "labels": {"app": "mixed"}}, "spec": bare})
    api.create(PODS, mirror_pod(api, "static", afternoon.nodes["mixed"].node))
    api.create("/api/v1/namespaces", {"metadata": {"name": "leaving"}})
    api.create("/api/v1/namespaces/leaving/pods", {"metadata": {"name": "last"}, "spec": leaving_spec()})
    crowd = replica_set("crowd", CROWD_PODS, grace_seconds=0)
    api.create(f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets", crowd)

    for scene, count in (("two-budgets", 3), ("crashing", 3), ("unplugged", 3), ("patient", 2), ("web", 1)):
        workers.await_running(scene, count)
    on_mixed = afternoon.nodes["mixed"]
    await_value("mixed runs", lambda: sorted(map(phase, workers.on_node(on_mixed))), lambda seen: len(seen) == 4)
    await_value("a job is done", lambda: list(map(phase, workers.on_node(on_mixed))), lambda seen: "Succeeded" in seen)
    last = "/api/v1/namespaces/leaving/pods/last"
    await_value("the last pod runs", lambda: api.get(last), is_running)
    await_value("the crowd waits", lambda: len(workers.pods("crowd")), lambda n: n == CROWD_PODS, timeout_seconds=90)

    workers.guard("two-budgets", pods=1)
    workers.guard("two-budgets", pods=1, budget="second")
    workers.guard("crashing", pods=1)
    crash(api, next(p for p in workers.pods("crashing") if "guarded" in p["metadata"]["labels"]))
    api.delete("/api/v1/namespaces/leaving")
    unplugged = afternoon.nodes["unplugged"]
    api.merge(f"{NODES}/{unplugged.node}", {"metadata": {"labels": {DEAD_KUBELET_LABEL: "dead"}}})


def test_a_pod_under_two_budgets_is_named_and_not_asked_again_and_again(afternoon: Afternoon) -> None:
    """Case 13."""
    drained = afternoon.end("two-budgets")
    [guarded] = [p for p in afternoon.before["two-budgets"] if "guarded" in p["metadata"]["labels"]]
    name, uid = guarded["metadata"]["name"], guarded["metadata"]["uid"]
    assert drained["forced"] == [f"{NAMESPACE}/{name}"]
    asked = [write for write in afternoon.touched("two-budgets") if write.uid == uid]
    assert [(write.verb, write.code) for write in asked] == [("create", 500), ("delete", 200)]
    assert afternoon.gone("two-budgets")


def test_a_crash_looping_pod_blocks_nobody_else_and_is_named(afternoon: Afternoon) -> None:
    """Case 15."""
    drained = afternoon.end("crashing")
    [guarded] = [p for p in afternoon.before["crashing"] if "guarded" in p["metadata"]["labels"]]
    assert drained["forced"] in ([], [f"{NAMESPACE}/{guarded['metadata']['name']}"])
    assert afternoon.gone("crashing")


def test_daemonset_mirror_and_finished_pods_are_left_alone_and_not_waited_for(afternoon: Afternoon) -> None:
    """Cases 19 and 21."""
    assert afternoon.end("mixed")["ending"] == "drained"
    working = {p["metadata"]["uid"]: p["metadata"]["name"] for p in afternoon.before["mixed"] if is_evictable(p)}
    assert len(working) == 2
    assert {write.uid for write in afternoon.touched("mixed")} == set(working)
    left = {pod["metadata"]["name"] for pod in afternoon.workers.on_node(afternoon.nodes["mixed"])}
    assert "static" in left
    daemons = our_evictions(afternoon.school.cloud.audit_log)
    assert not [write for write in daemons if write.name.startswith(("aws-node", "kube-proxy"))]
    await_value(
        "the job works elsewhere",
        lambda: afternoon.school.cluster.get(f"{PODS}?labelSelector=job-name%3Dworking")["items"],
        lambda pods: any(is_running(pod) for pod in pods),
    )


def test_a_namesake_elsewhere_is_neither_waited_for_nor_evicted(afternoon: Afternoon) -> None:
    """Case 17: a StatefulSet's pod comes back under the same name."""
    assert afternoon.end("web")["ending"] == "drained"
    [before] = afternoon.before["web"]
    [after] = afternoon.workers.await_running("web", 1)
    assert after["metadata"]["name"] == before["metadata"]["name"] == "web-0"
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert [write.uid for write in afternoon.touched("web")] == [before["metadata"]["uid"]]


def test_a_terminating_namespace_ends_its_pods_itself(afternoon: Afternoon) -> None:
    """Case 18."""
    assert afternoon.end("leaving")["ending"] == "drained"
    api = afternoon.school.cluster
    await_value("it is gone", lambda: api.exists("/api/v1/namespaces/leaving"), lambda exists: not exists)


def test_a_long_grace_is_cut_to_the_time_that_is_left(afternoon: Afternoon) -> None:
    """Case 24."""
    drained = afternoon.end("patient")
    graces = {w.request["deleteOptions"]["gracePeriodSeconds"] for w in afternoon.touched("patient") if w.code == 201}
    assert all(1 <= grace <= LITTLE_SECONDS - 10 for grace in graces)
    assert len(graces) >= 1
    assert (drained["evicted"], drained["forced"]) == (2, [])
    assert afternoon.gone("patient")


def test_a_dead_kubelet_ends_a_drain_that_nobody_can_confirm(afternoon: Afternoon) -> None:
    incomplete = afternoon.end("unplugged", "Drain Incomplete")
    assert incomplete["ending"] == "unreachable"
    assert len(incomplete["pods"]) == 3
    assert incomplete["seconds_left"] > 0


def test_when_all_is_over_no_message_is_left(afternoon: Afternoon) -> None:
    afternoon.workers.await_empty_queue()


def create(api: Any, group: str, resource: str, body: Document) -> None:
    api.create(f"/apis/{group}/namespaces/{NAMESPACE}/{resource}", body)


def stateful_set(name: str) -> Document:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(name)}
    spec = {"serviceName": name, "replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def job(name: str, scene: str, sleep_seconds: str) -> Document:
    spec = pod_spec(scene, restartPolicy="Never")
    spec["containers"][0]["command"] = ["sleep", sleep_seconds]
    return {"metadata": {"name": name}, "spec": {"template": {"spec": spec}}}


def mirror_pod(api: Any, name: str, node: str) -> Document:
    """As a kubelet shows a static pod (https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/)."""
    uid = api.get(f"{NODES}/{node}")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    metadata = {"name": name, "annotations": {"kubernetes.io/config.mirror": "2f4c"}, "ownerReferences": [owner]}
    spec = pod_spec("mixed", nodeName=node, automountServiceAccountToken=False)
    return {"metadata": metadata, "spec": spec}


def leaving_spec() -> Document:
    return pod_spec("leaving", grace_seconds=8)


def crash(api: Any, pod: Document) -> None:
    """The pod's container is restarted again and again: it runs, and is never ready."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    statuses = [s | {"ready": False, "restartCount": 7, "state": waiting} for s in pod["status"]["containerStatuses"]]
    unready = [
        c | {"status": "False"} if c["type"] in ("Ready", "ContainersReady") else c for c in pod["status"]["conditions"]
    ]
    api.merge(
        f"{PODS}/{pod['metadata']['name']}/status", {"status": {"conditions": unready, "containerStatuses": statuses}}
    )


def phase(pod: Document) -> str:
    found: str = pod["status"].get("phase", "")
    return found


def is_evictable(pod: Document) -> bool:
    return phase(pod) == "Running" and "kubernetes.io/config.mirror" not in pod["metadata"].get("annotations", {})
