"""The local cloud's Kubernetes is what its tests assume: a real API server, and kubelets that take their time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from localcloud.cloud import CloudRuns, LocalCloud, LocalCloudConfig
from localcloud.controlplane.plane import DEAD_KUBELET_LABEL
from tests.e2e.cluster_api import NODES, PODS, ClusterApi, Document, await_value, node_document, pod_document

EVENTS = "/api/v1/namespaces/default/events"


@pytest.fixture
def node_name(cluster: ClusterApi) -> str:
    """A Ready node of the test's own."""
    name = f"node-{uuid4().hex[:8]}"
    cluster.create(NODES, node_document(name))
    cluster.await_condition(name, "True")
    return name


def audited(cloud: LocalCloud, *, verb: str, subresource: str | None, name: str) -> list[Document]:
    entries = [json.loads(line) for line in cloud.audit_log.read_text().splitlines()]
    return [
        entry
        for entry in entries
        if entry["verb"] == verb
        and entry.get("objectRef", {}).get("name") == name
        and entry["objectRef"].get("subresource") == subresource
    ]


def test_the_api_server_is_ready_and_says_its_version(cluster: ClusterApi) -> None:
    assert cluster.get("/readyz")["text"] == "ok"
    assert cluster.get("/version")["gitVersion"] == "v1.36.3"


def test_rbac_refuses_an_anonymous_caller(cluster: ClusterApi) -> None:
    answer = cluster.as_bearer(None).call("GET", NODES)

    assert answer.status == 403
    assert "system:anonymous" in answer.body["message"]


def test_a_token_that_no_one_knows_is_unauthorized(cluster: ClusterApi) -> None:
    assert cluster.as_bearer("k8s-aws-v1.bm90IGEgdXJs").call("GET", NODES).status == 401


def test_a_node_becomes_ready_and_keeps_the_size_it_was_created_with(cluster: ClusterApi, node_name: str) -> None:
    status = cluster.get(f"{NODES}/{node_name}")["status"]

    assert status["allocatable"] == {"cpu": "3920m", "memory": "15147Mi", "pods": "58"}
    assert status["capacity"] == {"cpu": "4", "memory": "16Gi", "pods": "58"}


def test_a_pod_runs_after_its_image_is_pulled_and_the_events_say_how_long_that_took(
    cluster: ClusterApi, cluster_cloud: LocalCloud, node_name: str
) -> None:
    started = time.monotonic()
    cluster.create(PODS, pod_document("student", node_name))

    pod = cluster.await_phase("student", "Running")

    least_seconds = cluster_cloud.config.image_pull_seconds + cluster_cloud.config.start_seconds
    assert time.monotonic() - started >= least_seconds
    assert pod["spec"]["nodeName"] == node_name
    events = cluster.get(f"{EVENTS}?fieldSelector=involvedObject.uid={pod['metadata']['uid']}")["items"]
    messages = {event["reason"]: event["message"] for event in events}
    assert {"Scheduled", "Pulling", "Pulled"} <= set(messages)
    assert messages["Pulled"].startswith('Successfully pulled image "quay.io/jupyter/base-notebook:2026-01-05" in 1.5s')
    assert {e["source"]["host"] for e in events if e["reason"] == "Pulled"} == {node_name}


def test_the_audit_log_records_where_a_pod_was_bound(
    cluster: ClusterApi, cluster_cloud: LocalCloud, node_name: str
) -> None:
    cluster.create(PODS, pod_document("bound", node_name))
    cluster.await_phase("bound", "Running")

    [binding] = audited(cluster_cloud, verb="create", subresource="binding", name="bound")

    assert binding["user"]["username"] == "system:kube-scheduler"
    assert binding["requestObject"]["target"]["name"] == node_name


def test_a_deleted_pod_uses_its_grace_period(cluster: ClusterApi, node_name: str) -> None:
    cluster.create(PODS, pod_document("graceful", node_name, grace_seconds=3))
    cluster.await_phase("graceful", "Running")

    started = time.monotonic()
    cluster.delete(f"{PODS}/graceful")
    await_value("the pod is gone", lambda: cluster.exists(f"{PODS}/graceful"), lambda exists: not exists)

    assert 3.0 <= time.monotonic() - started < 6.0


def test_a_jobs_pod_completes_when_its_sleep_is_over(cluster: ClusterApi, node_name: str) -> None:
    pod = pod_document("unused", node_name, command=("sleep", "1"))["spec"] | {"restartPolicy": "Never"}
    job = {"metadata": {"name": "grading"}, "spec": {"template": {"spec": pod}}}
    path = "/apis/batch/v1/namespaces/default/jobs"
    cluster.create(path, job)

    done = await_value(
        "the job is done",
        lambda: cluster.get(f"{path}/grading"),
        lambda seen: bool(seen["status"].get("succeeded") == 1),
    )

    assert done["status"].get("failed") is None


@pytest.mark.long
def test_a_node_whose_kubelet_died_becomes_unknown_and_keeps_its_deleted_pods(
    cluster: ClusterApi, node_name: str
) -> None:
    cluster.create(PODS, pod_document("stranded", node_name, grace_seconds=1))
    cluster.await_phase("stranded", "Running")

    cluster.merge(f"{NODES}/{node_name}", {"metadata": {"labels": {DEAD_KUBELET_LABEL: "dead"}}})
    cluster.await_condition(node_name, "Unknown", timeout_seconds=90.0)
    cluster.delete(f"{PODS}/stranded")
    grace_is_over = time.time() + 4.0
    await_value("the grace period is over", time.time, lambda now: now > grace_is_over)
    assert cluster.exists(f"{PODS}/stranded")
    cluster.merge(f"{NODES}/{node_name}", {"metadata": {"labels": {DEAD_KUBELET_LABEL: None}}})

    cluster.await_condition(node_name, "True", timeout_seconds=60.0)
    await_value("the pod is gone", lambda: cluster.exists(f"{PODS}/stranded"), lambda exists: not exists)


def test_two_clouds_run_side_by_side_and_one_name_runs_once(
    cluster: ClusterApi, tmp_path: Path, node_name: str
) -> None:
    config = LocalCloudConfig(name="other", components=frozenset({"kubernetes"}), state_root=tmp_path)
    with LocalCloud.start(config) as other:
        names = [node["metadata"]["name"] for node in ClusterApi.of(other).get(NODES)["items"]]
        assert names == []
        assert cluster.exists(f"{NODES}/{node_name}")
        with pytest.raises(CloudRuns):
            LocalCloud.start(config)


def test_killing_the_parent_ends_every_child(tmp_path: Path) -> None:
    holder = f"""
import json, pathlib, time
from localcloud.cloud import LocalCloud, LocalCloudConfig
config = LocalCloudConfig(components=frozenset({{"kubernetes"}}), state_root=pathlib.Path({str(tmp_path)!r}))
cloud = LocalCloud.start(config)
print(json.dumps([child.pid for child in cloud.children]), flush=True)
time.sleep(3600)
"""
    with subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids: list[int] = json.loads(parent.stdout.readline())
        assert len(pids) == 6
        assert running(pids) == pids

        os.kill(parent.pid, signal.SIGKILL)

    await_value("every child has ended", lambda: running(pids), lambda left: left == [])


def running(pids: list[int]) -> list[int]:
    """Those that live; a zombie that nobody has waited for does not."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,stat=", "-p", ",".join(map(str, pids))], capture_output=True, text=True, check=False
    ).stdout
    living = {int(pid) for pid, state in (line.split() for line in listed.splitlines()) if not state.startswith("Z")}
    return [pid for pid in pids if pid in living]
