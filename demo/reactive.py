"""The other way: a small stand-in that scales a pool as cluster-autoscaler does, after pods are already waiting.

It scans every ten seconds for pods that the scheduler could not place, estimates how many nodes of the group's kind
would hold them, and raises the group's desired capacity. A group without a node to look at is estimated from what EC2
says of the instance type, which is more than a kubelet hands out; nodes on their way count as room.

https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md#how-does-scale-up-work
https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubernetes import client
from kubernetes.utils.quantity import parse_quantity

from demo.classroom import POOL_LABEL

SCAN_SECONDS = 10.0
RESOURCES = ("cpu", "memory", "pods")

Amounts = Mapping[str, float]
"""Resource -> cores, bytes or pods."""


@dataclass(frozen=True)
class Scan:
    """What one look at the pool shows."""

    waiting_pods: int
    """Pods that the scheduler called unschedulable."""
    pods_per_node: int
    """Places on one new node, as estimated."""
    room: int
    """Free places on Ready nodes and, estimated, on nodes that were asked for and are not there yet."""
    desired: int
    most: int
    """The group's MaxSize."""


def wanted(scan: Scan) -> int:
    """The desired capacity after a scan: as it is, or raised for the pods that find no room, up to MaxSize."""
    homeless = max(0, scan.waiting_pods - scan.room)
    if homeless == 0 or scan.pods_per_node == 0:
        return scan.desired
    return max(scan.desired, min(scan.most, scan.desired + math.ceil(homeless / scan.pods_per_node)))


def places(allocatable: Amounts, daemons: Amounts, pod: Amounts) -> int:
    """How many such pods fit on a node beside its DaemonSets' pods."""
    return max(0, min(math.floor((allocatable[name] - daemons[name]) / pod[name]) for name in RESOURCES))


def amounts(quantities: Mapping[str, str]) -> dict[str, float]:
    exact: Callable[[str], Any] = parse_quantity
    return {name: float(exact(quantities.get(name, "0"))) for name in RESOURCES}


def requests(spec: Mapping[str, Any]) -> dict[str, float]:
    """What a pod's containers ask for together, itself counted as one pod."""
    total = dict.fromkeys(RESOURCES, 0.0)
    for container in spec["containers"]:
        for name, value in amounts((container.get("resources") or {}).get("requests") or {}).items():
            total[name] += value
    return {**total, "pods": 1.0}


def summed(each: Iterable[Amounts]) -> dict[str, float]:
    total = dict.fromkeys(RESOURCES, 0.0)
    for one in each:
        for name in RESOURCES:
            total[name] += one[name]
    return total


class ReactiveScaler:
    """Scales one group by its pool's unschedulable pods until it is stopped."""

    def __init__(self, kubernetes: Any, autoscaling: Any, ec2: Any, *, group: str, say: Callable[[str], None]) -> None:
        self._core: Any = client.CoreV1Api(kubernetes)
        self._apps: Any = client.AppsV1Api(kubernetes)
        self._sanitize = kubernetes.sanitize_for_serialization
        self._autoscaling = autoscaling
        self._ec2 = ec2
        self._group = group
        self._say = say
        self._stopped = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="reactive", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, and raise what ended it early if something did."""
        self._stopped.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        try:
            while not self._stopped.wait(SCAN_SECONDS):
                self.scan_once()
        except Exception as failure:  # noqa: BLE001 - handed over by stop(); a silent stand-in would flatter us
            self._failure = failure

    def scan_once(self) -> None:
        scan = self._look()
        desired = wanted(scan)
        if desired > scan.desired:
            self._autoscaling.set_desired_capacity(
                AutoScalingGroupName=self._group, DesiredCapacity=desired, HonorCooldown=False
            )
            self._say(f"{scan.waiting_pods} pods wait; asks for {desired - scan.desired} more nodes (now {desired})")

    def _look(self) -> Scan:
        described = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[self._group])
        group = described["AutoScalingGroups"][0]
        pods = self._plain(self._core.list_pod_for_all_namespaces(resource_version="0"))
        nodes = self._plain(self._core.list_node(label_selector=f"{POOL_LABEL}={self._group}", resource_version="0"))
        ready = [node for node in nodes if is_ready(node)]
        waiting = [pod for pod in pods if is_unschedulable(pod) and selects_pool(pod, self._group)]
        if not waiting:
            return Scan(0, 0, 0, group["DesiredCapacity"], group["MaxSize"])
        pod = requests(waiting[0]["spec"])
        daemons = self._daemons()
        sample = amounts(ready[0]["status"]["allocatable"]) if ready else self._template(group)
        fit = places(sample, daemons, pod)
        on_their_way = max(0, group["DesiredCapacity"] - len(ready))
        room = on_their_way * fit + sum(free_places(node, pods, pod) for node in ready)
        return Scan(len(waiting), fit, room, group["DesiredCapacity"], group["MaxSize"])

    def _daemons(self) -> dict[str, float]:
        sets = self._plain(self._apps.list_daemon_set_for_all_namespaces())
        return summed(requests(each["spec"]["template"]["spec"]) for each in sets)

    def _template(self, group: Mapping[str, Any]) -> dict[str, float]:
        """A node as EC2 describes its type, before the operating system and the kubelet have taken their part."""
        launch = group["LaunchTemplate"]["LaunchTemplateId"]
        versions = self._ec2.describe_launch_template_versions(LaunchTemplateId=launch, Versions=["$Latest"])
        kind = versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]["InstanceType"]
        facts = self._ec2.describe_instance_types(InstanceTypes=[kind])["InstanceTypes"][0]
        network = facts["NetworkInfo"]
        return {
            "cpu": facts["VCpuInfo"]["DefaultVCpus"],
            "memory": facts["MemoryInfo"]["SizeInMiB"] * 2**20,
            "pods": network["MaximumNetworkInterfaces"] * (network["Ipv4AddressesPerInterface"] - 1) + 2,
        }

    def _plain(self, listing: Any) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self._sanitize(listing)["items"]
        return items


def is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node["status"].get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_unschedulable(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions)


def selects_pool(pod: Mapping[str, Any], pool: str) -> bool:
    return bool((pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL) == pool)


def free_places(node: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], pod: Amounts) -> int:
    on_node = [one for one in pods if one["spec"].get("nodeName") == node["metadata"]["name"]]
    taken = summed(requests(one["spec"]) for one in on_node)
    return places(amounts(node["status"]["allocatable"]), taken, pod)
