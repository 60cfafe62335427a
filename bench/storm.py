"""A Spot storm: every node of a full pool is noticed at once, on the deployed stack with cold functions.

    python -m bench.storm --nodes 50 --pods 10 [--peer <aws-node-termination-handler binary>]

One JSON line on standard output; progress goes to standard error. Every figure is read from the API server's audit log.
Seconds count from the first notice. `lost`: nodes never cordoned, and pods that run nowhere in the end. With a peer the
same storm is played for it on a cloud of its own, and `ratio` is its figure over ours.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import urllib3

from bench.storm_audit import figures, read_storm
from bench.storm_peer import Peer
from localcloud.clients import aws_client
from localcloud.cloud import LocalCloud, LocalCloudConfig
from localcloud.deploy import apply_manifest, deploy
from tests.e2e.cluster_api import ClusterApi, await_value, ready_status

ROOT = Path(__file__).resolve().parents[1]
FILE = Path(__file__).with_name("storm.yaml")
GROUP = "firstbell-hub-worker"
FUNCTION = "firstbell-hub-interruption"
NAMESPACE = "storm"
ZONE = "us-west-2a"
PODS_PER_SPARE_NODE = 40
GRACE_SECONDS = 1
"""KubeSpawner's own: what a notebook gets to end."""
IMAGE_PULL_SECONDS = 15.0
"""A notebook's image on a node that has never seen it."""
MOST_SECONDS = 300
COMPARED = ("first_cordon_s", "all_cordoned_s", "all_gone_s", "evictions")


class Arena:
    """A pool whose first `nodes` nodes carry `pods` pods each, with empty spare nodes that hold them all."""

    def __init__(self, cloud: LocalCloud, nodes: int, pods: int) -> None:
        self.cloud, self.nodes, self.pods = cloud, nodes, nodes * pods
        self.api = ClusterApi.of(cloud)
        self.autoscaling = aws_client(cloud, "autoscaling")

    def deploy(self) -> None:
        subnets = aws_client(self.cloud, "ec2").describe_subnets(
            Filters=[{"Name": "availability-zone", "Values": [ZONE]}]
        )
        file = self.cloud.state_dir / "firstbell.yaml"
        file.write_text(FILE.read_text().replace("SUBNET", subnets["Subnets"][0]["SubnetId"]))
        deploy(self.cloud, ROOT, {"file": str(file), "target": "host"})
        apply_manifest(self.cloud, ROOT / "infra" / "rbac.yaml")

    def fill(self) -> None:
        self._resize(self.nodes)
        self.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self.api.create(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", _deployment(self.pods))
        await_value("the pods run", self.running, lambda count: count == self.pods, timeout_seconds=MOST_SECONDS)
        self._resize(self.nodes + -(-self.pods // PODS_PER_SPARE_NODE))

    def doomed(self) -> dict[str, str]:
        """Node -> instance id, of the nodes that carry pods."""
        occupied = {pod["spec"]["nodeName"] for pod in self._pods()}
        nodes = self.api.get("/api/v1/nodes")["items"]
        found = {n["metadata"]["name"]: n["spec"]["providerID"].rpartition("/")[2] for n in nodes}
        return {name: instance_id for name, instance_id in found.items() if name in occupied}

    def originals(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self._pods()}

    def running(self) -> int:
        return sum(
            p["status"].get("phase") == "Running" and "deletionTimestamp" not in p["metadata"] for p in self._pods()
        )

    def notice(self, doomed: dict[str, str]) -> dict[str, float]:
        """One Spot notice a node, at once, through the rules of the default bus. Node -> when it was sent."""
        http = urllib3.PoolManager(maxsize=16)

        def send(item: tuple[str, str]) -> tuple[str, float]:
            node, instance_id = item
            sent = time.time()
            detail = {"instance-id": instance_id, "instance-action": "terminate"}
            event = {"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning", "detail": detail}
            answer = http.request("POST", f"{self.cloud.aws_endpoint}/_localcloud/aws-events", json=event)
            assert answer.status == 200, answer.data
            return node, sent

        with ThreadPoolExecutor(16) as threads:
            return dict(threads.map(send, doomed.items()))

    def await_calm(self, originals: set[str]) -> None:
        """Until no pod of before is left and as many run as before, or the time is over."""
        deadline = time.monotonic() + MOST_SECONDS
        while time.monotonic() < deadline:
            time.sleep(1)
            if not originals & self.originals() and self.running() == self.pods:
                return

    def _pods(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return items

    def _resize(self, nodes: int) -> None:
        self.autoscaling.set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=nodes)
        await_value(
            f"{nodes} nodes are Ready",
            lambda: sum(ready_status(node) == "True" for node in self.api.get("/api/v1/nodes")["items"]),
            lambda ready: ready >= nodes,
            timeout_seconds=MOST_SECONDS,
        )


def play(name: str, nodes: int, pods: int, report: Callable[[str], None], peer: Path | None = None) -> dict[str, Any]:
    """One storm on a cloud of its own: answered by the deployed function, or by the peer in its stead."""
    with tempfile.TemporaryDirectory() as folder:
        config = LocalCloudConfig(name=name, state_root=Path(folder), image_pull_seconds=IMAGE_PULL_SECONDS)
        with LocalCloud.start(config, report) as cloud:
            arena = Arena(cloud, nodes, pods)
            arena.deploy()
            arena.fill()
            report(f"{nodes} nodes with {pods} pods each; the storm begins")
            doomed, originals = arena.doomed(), arena.originals()
            assert len(doomed) == nodes, f"{len(doomed)} nodes carry pods"
            if peer is None:
                noticed = arena.notice(doomed)
                arena.await_calm(originals)
            else:
                _silence_our_own(cloud)
                with Peer(peer, cloud, FUNCTION):
                    noticed = arena.notice(doomed)
                    arena.await_calm(originals)
            running = arena.running()
        storm = read_storm(cloud.audit_log, NAMESPACE, min(noticed.values()))
        return figures(storm, noticed, originals, running=running, wanted=arena.pods)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--pods", type=int, default=10, help="pods on each node")
    parser.add_argument("--peer", type=Path, help="an aws-node-termination-handler binary")
    arguments = parser.parse_args()

    def report(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    ours = play("storm", arguments.nodes, arguments.pods, report)
    answer = {"nodes": arguments.nodes, "pods": arguments.pods, **ours}
    if arguments.peer:
        theirs = play("storm-peer", arguments.nodes, arguments.pods, report, arguments.peer)
        answer |= {"peer": theirs, "ratio": {name: _ratio(theirs[name], ours[name]) for name in COMPARED}}
    print(json.dumps(answer))
    return 0


def _silence_our_own(cloud: LocalCloud) -> None:
    functions = aws_client(cloud, "lambda")
    for mapping in functions.list_event_source_mappings(FunctionName=FUNCTION)["EventSourceMappings"]:
        functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)


def _ratio(theirs: float | None, ours: float | None) -> float | None:
    return round(theirs / ours, 2) if theirs and ours else None


def _deployment(pods: int) -> dict[str, Any]:
    labels = {"app": "storm"}
    container = {
        "name": "worker",
        "image": "hub/worker",
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    return {
        "metadata": {"name": "storm"},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": GRACE_SECONDS,
                    "nodeSelector": {"pool": "worker"},
                    "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "worker"}],
                    "topologySpreadConstraints": [spread],
                    "containers": [container],
                },
            },
        },
    }


if __name__ == "__main__":
    sys.exit(main())
