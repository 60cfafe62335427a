"""Worker nodes that AWS takes away: what tests put on them, what AWS says of them, and what can be seen afterwards."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import urllib3

from localcloud.clients import aws_client
from tests.e2e.cluster_api import NODES, Document, await_value, ready_status
from tests.e2e.deployed import NAMESPACE, Deployed

POOL = "worker"
GROUP = "firstbell-hub-worker"
HOOK = "firstbell-drain"
FUNCTION = "firstbell-hub-interruption"
DEAD_LETTERS = f"{FUNCTION}-dead-letters"
SPOT_SECONDS = 120
TOLERATIONS = [{"key": "dedicated", "operator": "Equal", "value": "worker"}]
IN_QUEUE = ("Messages", "MessagesNotVisible", "MessagesDelayed")
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@dataclass(frozen=True)
class Worker:
    instance_id: str
    node: str


class Workers:
    """The pool of workers of a deployed stack."""

    def __init__(self, school: Deployed) -> None:
        self.school, self.cloud, self.api = school, school.cloud, school.cluster
        self._sqs = aws_client(self.cloud, "sqs")
        self._metrics = aws_client(self.cloud, "cloudwatch")
        self._http = urllib3.PoolManager(retries=False)
        self._taken: set[str] = set()

    def take(self, count: int) -> list[Worker]:
        """So many Ready nodes that no test had before."""
        before = self._ready()
        desired = self.school.group(POOL)["DesiredCapacity"]
        self.school.autoscaling.set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=desired + count)
        fresh = await_value(
            f"{count} new workers are Ready",
            lambda: {k: v for k, v in self._ready().items() if k not in before and k not in self._taken},
            lambda found: len(found) >= count,
            timeout_seconds=60,
        )
        taken = [Worker(instance_id, node) for node, instance_id in sorted(fresh.items())[:count]]
        self._taken |= {worker.node for worker in taken}
        return taken

    def reserve(self, name: str, *workers: Worker) -> None:
        """From now on pods of this name may run on these nodes, too."""
        for worker in workers:
            self.api.merge(f"{NODES}/{worker.node}", {"metadata": {"labels": {f"test-{name}": "true"}}})

    def start(self, name: str, replicas: int, **spec: Any) -> None:
        """A ReplicaSet on the nodes of this name."""
        self.api.create(f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets", replica_set(name, replicas, **spec))

    def await_running(self, name: str, count: int, *, timeout_seconds: float = 60) -> list[Document]:
        return await_value(
            f"{count} pods of {name} run",
            lambda: [pod for pod in self.pods(name) if is_running(pod)],
            lambda running: len(running) == count,
            timeout_seconds=timeout_seconds,
        )

    def pods(self, name: str) -> list[Document]:
        found: list[Document] = self.api.get(f"{PODS}?labelSelector=app%3D{name}")["items"]
        return found

    def on_node(self, worker: Worker) -> list[Document]:
        """Pods of tests on the node; its DaemonSets' are elsewhere."""
        found: list[Document] = self.api.get(f"{PODS}?fieldSelector=spec.nodeName%3D{worker.node}")["items"]
        return found

    def guard(self, name: str, *, pods: int, budget: str = "") -> None:
        """A disruption budget that lets none of so many pods of this name be evicted."""
        for pod in self.pods(name)[:pods]:
            change = {"metadata": {"labels": {"guarded": name}}}
            self.api.merge(f"{PODS}/{pod['metadata']['name']}", change)
        path = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"guarded": name}}}
        self.api.create(path, {"metadata": {"name": budget or name}, "spec": spec})
        await_value(
            "the budget is counted",
            lambda: self.api.get(f"{path}/{budget or name}").get("status", {}),
            lambda status: status.get("expectedPods", 0) >= pods,
        )

    def say(self, source: str, kind: str, detail: Document, *, at: float | None = None, event_id: str = "") -> None:
        """An event of an AWS service, through the rules of the default bus."""
        event = {"source": source, "detail-type": kind, "detail": detail, "id": event_id or str(uuid.uuid4())}
        if at is not None:
            event["time"] = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        answer = self._http.request("POST", f"{self.cloud.aws_endpoint}/_localcloud/aws-events", json=event)
        assert answer.status == 200, answer.data

    def warn(self, instance_id: str, *, seconds_left: float = SPOT_SECONDS, event_id: str = "") -> None:
        """A Spot warning that came a while ago, if less than two minutes are left."""
        detail = {"instance-id": instance_id, "instance-action": "terminate"}
        at = time.time() - (SPOT_SECONDS - seconds_left)
        self.say("aws.ec2", "EC2 Spot Instance Interruption Warning", detail, at=at, event_id=event_id)

    def interrupt(self, worker: Worker) -> None:
        """Spot takes the instance: a warning now, its end in two minutes."""
        self._knock("spot-interruption", {"instance_id": worker.instance_id})

    def recommend(self, worker: Worker) -> None:
        self._knock("rebalance-recommendation", {"instance_id": worker.instance_id})

    def terminate(self, worker: Worker) -> None:
        """Auto Scaling takes the instance: it waits for its terminate hook."""
        self.school.autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId=worker.instance_id, ShouldDecrementDesiredCapacity=True
        )

    def completions(self, worker: Worker) -> list[Document]:
        """Accepted calls of CompleteLifecycleAction for the instance. A pass that is done again asks again, and is told
        that there is no such action any more."""
        return [
            call
            for call in self._journal("fleet-calls.jsonl")
            if call["action"] == "CompleteLifecycleAction"
            and call["parameters"]["InstanceId"] == worker.instance_id
            and call["error"] is None
        ]

    def life(self, worker: Worker) -> list[str]:
        return [e["event"] for e in self._journal("fleet-events.jsonl") if e["instance_id"] == worker.instance_id]

    def ignored(self, reason: str) -> float:
        """How many notices the function says that it ignored for this reason."""
        now = datetime.now(UTC)
        dimensions = {"cluster": "hub", "reason": reason}
        answer = self._metrics.get_metric_statistics(
            Namespace="Firstbell",
            MetricName="NoticesIgnored",
            Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(minutes=1),
            Period=3600,
            Statistics=["Sum"],
        )
        return float(sum(point["Sum"] for point in answer["Datapoints"]))

    def await_empty_queue(self, *, timeout_seconds: float = 90) -> None:
        """Nothing waits, is worked on or is delayed; and nothing was given up."""
        await_value(
            "the queue is empty",
            lambda: self.messages(FUNCTION),
            lambda messages: messages == 0,
            timeout_seconds=timeout_seconds,
        )
        assert self.messages(DEAD_LETTERS) == 0

    def messages(self, queue: str) -> int:
        url = self._sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        names = [f"ApproximateNumberOf{part}" for part in IN_QUEUE]
        counts = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(counts[name]) for name in names)

    def _knock(self, door: str, body: Document) -> None:
        answer = self._http.request("POST", f"{self.cloud.fleet_endpoint}/_localcloud/fleet/{door}", json=body)
        assert answer.status == 200, answer.data

    def _journal(self, file: str) -> list[Document]:
        return [json.loads(line) for line in (self.cloud.state_dir / file).read_text().splitlines()]

    def _ready(self) -> dict[str, str]:
        nodes = self.api.get(f"{NODES}?labelSelector=pool%3D{POOL}")["items"]
        return {
            node["metadata"]["name"]: node["spec"]["providerID"].rpartition("/")[2]
            for node in nodes
            if ready_status(node) == "True"
        }


def replica_set(name: str, replicas: int, **spec: Any) -> Document:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod_spec(name, **spec)}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def pod_spec(name: str, *, grace_seconds: int = 1, **more: Any) -> Document:
    """A small pod that only runs on nodes reserved for this name."""
    requests = {"cpu": "20m", "memory": "16Mi"}
    return {
        "nodeSelector": {f"test-{name}": "true"},
        "tolerations": TOLERATIONS,
        "terminationGracePeriodSeconds": grace_seconds,
        "containers": [{"name": "worker", "image": "hub/worker", "resources": {"requests": requests}}],
        **more,
    }


def is_running(pod: Document) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def uids(pods: list[Document]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}
