"""What tests of idle do around the deployed function: evaluations, nodes, and who touched whose pod."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud.clients import aws_client
from tests.e2e.cluster_api import NODES, Document, await_value
from tests.e2e.deployed import NAMESPACE, Deployed

FUNCTION = "firstbell-hub-idle"
MARK = "firstbell.dev/idle"
SETTLE_SECONDS = 5.0


@dataclass(frozen=True)
class Idling:
    """One pool of a deployed school, and its nodes."""

    school: Deployed
    pool: str

    def evaluate(self) -> None:
        """What the schedule does every five minutes."""
        answer = aws_client(self.school.cloud, "lambda").invoke(FunctionName=FUNCTION)
        assert "FunctionError" not in answer, answer["Payload"].read().decode()

    def evaluate_twice(self) -> None:
        """Two looks, as far apart as they have to be."""
        self.evaluate()
        time.sleep(SETTLE_SECONDS + 1)  # nothing but time has to pass
        self.evaluate()

    def nodes(self) -> dict[str, Document]:
        """Name -> node."""
        selector = f"labelSelector=hub.jupyter.org%2Fpool-name%3D{self.pool}"
        return {node["metadata"]["name"]: node for node in self.school.cluster.get(f"{NODES}?{selector}")["items"]}

    def marked(self) -> set[str]:
        return {name for name, node in self.nodes().items() if MARK in node["metadata"].get("annotations", {})}

    def raise_to(self, units: int) -> list[str]:
        """Another writer raises the group; the names of its nodes once all are Ready."""
        group = self.school.group(self.pool)["AutoScalingGroupName"]
        if self.school.group(self.pool)["DesiredCapacity"] < units:
            self.school.autoscaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=units)
        await_value(f"{units} nodes of {self.pool}", self.ready_and_open, lambda names: len(names) >= units)
        return sorted(self.ready_and_open())

    def ready_and_open(self) -> set[str]:
        return {name for name, node in self.nodes().items() if _ready(node) and not node["spec"].get("unschedulable")}

    def await_nodes(self, names: set[str]) -> None:
        await_value(f"nodes of {self.pool}", lambda: set(self.nodes()), lambda left: left == names)

    def node_of(self, pod: str) -> str:
        """Empty while no node has been found for it, and once it is gone."""
        answer = self.school.cluster.call("GET", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}")
        return str(answer.body.get("spec", {}).get("nodeName", ""))

    def await_running(self, pod: str) -> str:
        """Its node. Tick, which gives cordoned nodes back, runs each minute."""
        await_value(
            f"{pod} runs",
            lambda: self.school.pod(pod)["status"]["phase"],
            lambda phase: phase == "Running",
            timeout_seconds=120,
        )
        return self.node_of(pod)

    def leave(self, *pods: str) -> None:
        """Students stop their servers."""
        for pod in pods:
            self.school.cluster.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}", {"gracePeriodSeconds": 1})
        await_value("they are gone", lambda: [p for p in pods if self.node_of(p)], lambda left: not left)


def touched_by_others(audit_log: Path, pods: set[str]) -> list[Document]:
    """Evictions and deletions of these pods by anyone but the administrator, who is the student, and the kubelets, who
    end what they are told to end."""
    return [
        event
        for event in _writes(audit_log)
        if event["objectRef"].get("name") in pods
        and (event["verb"], _resource(event)) in (("create", "pods/eviction"), ("delete", "pods"))
        and not _is_student_or_kubelet(event)
    ]


def written_by_us(audit_log: Path, group: str) -> list[str]:
    """`verb resource` of every accepted write of the function with this Kubernetes group."""
    return [
        f"{event['verb']} {_resource(event)}"
        for event in _writes(audit_log)
        if group in event["user"].get("groups", ()) and event.get("responseStatus", {}).get("code", 500) < 300
    ]


def _is_student_or_kubelet(event: Document) -> bool:
    groups = set(event["user"].get("groups", ()))
    return "system:masters" in groups


def _resource(event: Document) -> str:
    about = event["objectRef"]
    return "/".join(filter(None, (about.get("resource", ""), about.get("subresource", ""))))


def _writes(audit_log: Path) -> Iterator[dict[str, Any]]:
    with audit_log.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line) if line.endswith("\n") else {}
            if event.get("stage") == "ResponseComplete" and event["verb"] not in ("get", "list", "watch"):
                yield event


def _ready(node: Document) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
