"""Firstbell deployed to a local cloud, and what a test does around it: from outside, like a portal or a student."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.tap import Heard, Tap
from localcloud.clients import aws_client
from localcloud.cloud import LocalCloud
from localcloud.deploy import apply_manifest, deploy
from tests.e2e.cluster_api import ClusterApi, Document, await_value

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).parent / "firstbell.yaml"
BUS = "firstbell-hub"
SOURCE = "edu.example.timetable"
NAMESPACE = "hub"
ZONE = "us-west-2a"
DAEMONS = {"aws-node": "50m", "kube-proxy": "100m"}


@dataclass
class Deployed:
    """The stack on its cloud, with a tap on its bus."""

    cloud: LocalCloud
    outputs: dict[str, dict[str, str]]
    heard: list[Heard] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.cluster = ClusterApi.of(self.cloud)
        self.events = aws_client(self.cloud, "events")
        self.autoscaling = aws_client(self.cloud, "autoscaling")
        self._tap = Tap(self.events, aws_client(self.cloud, "sqs"), BUS, self._hear)
        self._tap.start()

    def stop(self) -> None:
        self._tap.stop()

    def put(self, *details: Any, source: str = SOURCE, detail_type: str = "Demand Signal") -> Sequence[Document]:
        """Events as a portal puts them; the bus's answer, entry by entry."""
        entries = [
            {
                "Source": source,
                "DetailType": detail_type,
                "EventBusName": BUS,
                "Detail": detail if isinstance(detail, str) else json.dumps(detail),
            }
            for detail in details
        ]
        answer: Sequence[Document] = self.events.put_events(Entries=entries)["Entries"]
        return answer

    def outcomes(self, detail_type: str, **fields: Any) -> list[Document]:
        """Details heard so far of this type and with these fields."""
        with self._lock:
            heard = [event.detail for event in self.heard if event.detail_type == detail_type]
        return [detail for detail in heard if fields.items() <= detail.items()]

    def await_outcome(self, detail_type: str, *, timeout_seconds: float = 120, **fields: Any) -> Document:
        """tick, which announces readiness, runs each minute."""
        return await_value(
            f"{detail_type} {fields}",
            lambda: self.outcomes(detail_type, **fields),
            bool,
            timeout_seconds=timeout_seconds,
        )[0]

    def group(self, pool: str) -> Document:
        """The pool's Auto Scaling group as the group authority has it."""
        groups = self.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
        found: Document = next(g for g in groups if g["AutoScalingGroupName"].endswith(pool))
        return found

    def await_desired(self, pool: str, units: int, *, timeout_seconds: float = 60) -> None:
        await_value(
            f"{pool} has {units}",
            lambda: self.group(pool)["DesiredCapacity"],
            lambda desired: desired == units,
            timeout_seconds=timeout_seconds,
        )

    def students(self, pool: str, count: int, reference: str | None = None) -> list[str]:
        """Servers as KubeSpawner makes them; their names."""
        names = [f"jupyter-{uuid.uuid4().hex[:10]}" for _ in range(count)]
        for name in names:
            self.cluster.create(f"/api/v1/namespaces/{NAMESPACE}/pods", student_pod(name, pool, reference))
        return names

    def pod(self, name: str) -> Document:
        return self.cluster.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")

    def _hear(self, event: Heard) -> None:
        with self._lock:
            self.heard.append(event)


def deploy_school(cloud: LocalCloud, operators_file: str | None = None) -> Deployed:
    """A hub with EKS's DaemonSets, and Firstbell deployed beside it with the ordinary command line."""
    cluster = ClusterApi.of(cloud)
    cluster.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for name, cpu in DAEMONS.items():
        cluster.create("/apis/apps/v1/namespaces/kube-system/daemonsets", daemon_set(name, cpu))
    subnets = aws_client(cloud, "ec2").describe_subnets(Filters=[{"Name": "availability-zone", "Values": [ZONE]}])
    file = cloud.state_dir / FILE.name
    file.write_text((operators_file or FILE.read_text()).replace("SUBNET", subnets["Subnets"][0]["SubnetId"]))
    outputs = deploy(cloud, ROOT, {"file": str(file), "target": "host"})
    apply_manifest(cloud, ROOT / "infra" / "rbac.yaml")
    return Deployed(cloud, outputs)


def student_pod(name: str, pool: str, reference: str | None) -> Document:
    labels = {"component": "singleuser-server", **({"firstbell.dev/reference": reference} if reference else {})}
    requests = {"cpu": "500m", "memory": "2Gi"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "nodeSelector": {"hub.jupyter.org/pool-name": pool},
            "tolerations": [{"key": "hub.jupyter.org/dedicated", "operator": "Equal", "value": "user"}],
            "containers": [{"name": "notebook", "image": "hub/notebook", "resources": {"requests": requests}}],
        },
    }


def daemon_set(name: str, cpu: str) -> Document:
    labels = {"k8s-app": name}
    container = {"name": name, "image": f"eks/{name}", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"hostNetwork": True, "tolerations": [{"operator": "Exists"}], "containers": [container]},
            },
        },
    }
