"""A whole fleet over real HTTP and boto3, with a clock that tests move and a fake API server."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from localcloud.fleet import groups
from localcloud.fleet.compute import MotoCompute
from localcloud.fleet.fleet import Fleet
from localcloud.fleet.journal import Journal
from localcloud.fleet.node_objects import csi_node_object, node_object
from localcloud.fleet.server import Endpoint, serve
from localcloud.fleet.state import Machine
from localcloud.fleet.timers import Timers

REGION = "us-west-2"
ZONES = ["us-west-2a", "us-west-2b", "us-west-2c"]
BOOT_SECONDS = 30.0

NODE_CONFIG = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: hub}
  kubelet:
    flags:
    - --node-labels=hub.jupyter.org/pool-name=notebook
    - --register-with-taints=hub.jupyter.org/dedicated=user:NoSchedule
--//--
"""


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeNodes:
    """The API server's part: nodes by name, and how many pods keep each busy."""

    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    csi_nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    busy: dict[str, int] = field(default_factory=dict)

    def join(self, machine: Machine, joined: Callable[[], None]) -> None:
        self.nodes[machine.node_name] = node_object(machine, REGION, "v1.36.3")
        self.csi_nodes[machine.node_name] = csi_node_object(machine, "uid")
        joined()

    def leave(self, machine: Machine, left: Callable[[], None]) -> None:
        self.nodes.pop(machine.node_name, None)
        left()

    def busy_pods(self) -> Mapping[str, int]:
        return self.busy


@dataclass
class Heard:
    """What AWS said by itself."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    notices: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def event(self, source: str, kind: str, resources: Sequence[str], detail: Mapping[str, Any], now: float) -> None:
        self.events.append((kind, dict(detail)))

    def notify(self, target_arn: str, body: Mapping[str, Any]) -> None:
        self.notices.append((target_arn, dict(body)))

    def details(self, kind: str) -> list[dict[str, Any]]:
        return [detail for one, detail in self.events if one == kind]


@dataclass
class World:
    """The fleet and everything around it."""

    fleet: Fleet
    clock: Clock
    nodes: FakeNodes
    heard: Heard
    folder: Path
    autoscaling: Any
    ec2: Any
    url: str

    def advance(self, seconds: float) -> None:
        """Let time pass, transition by transition."""
        target = self.clock.now + seconds
        while (following := self.fleet.timers.run_due()) is not None and following <= target:
            self.clock.now = following
        self.clock.now = target
        self.fleet.timers.run_due()

    def template(self, name: str = "pool", instance_type: str = "m5.xlarge", user_data: str = NODE_CONFIG) -> str:
        created = self.ec2.create_launch_template(
            LaunchTemplateName=name,
            LaunchTemplateData={
                "ImageId": "ami-0123456789abcdef0",
                "InstanceType": instance_type,
                "UserData": base64.b64encode(user_data.encode()).decode(),
            },
        )
        return str(created["LaunchTemplate"]["LaunchTemplateId"])

    def group(self, name: str = "pool", *, desired: int = 0, zones: Sequence[str] = ZONES[:1], **members: Any) -> None:
        """A group of m5.xlarge, 0..20, that does not rebalance unless it has several zones."""
        if "LaunchTemplate" not in members and "MixedInstancesPolicy" not in members:
            members["LaunchTemplate"] = {"LaunchTemplateId": self.template(name), "Version": "$Latest"}
        request = {"MinSize": 0, "MaxSize": 20, "DesiredCapacity": desired, "AvailabilityZones": list(zones), **members}
        self.autoscaling.create_auto_scaling_group(AutoScalingGroupName=name, **request)
        self.advance(0)

    def want(self, desired: int, name: str = "pool") -> None:
        self.autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=desired)
        self.advance(0)

    def shown(self, name: str = "pool") -> dict[str, Any]:
        found = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
        return dict(found[0]) if found else {}

    def states(self, name: str = "pool") -> dict[str, str]:
        return {one["InstanceId"]: one["LifecycleState"] for one in self.shown(name)["Instances"]}

    def ids(self, name: str = "pool") -> list[str]:
        return list(self.states(name))

    def activities(self, name: str = "pool") -> list[dict[str, Any]]:
        answer = self.autoscaling.describe_scaling_activities(AutoScalingGroupName=name)
        return list(answer["Activities"])

    def node_of(self, instance_id: str) -> str:
        return self.fleet.machines[instance_id].node_name


def new_fleet(folder: Path, clock: Clock, nodes: FakeNodes, heard: Heard) -> Fleet:
    fleet = Fleet(
        account=DEFAULT_ACCOUNT_ID,
        region=REGION,
        boot_seconds=BOOT_SECONDS,
        compute=MotoCompute(DEFAULT_ACCOUNT_ID, REGION),
        registrar=nodes,
        announcer=heard,
        journal=Journal(folder, clock),
        timers=Timers(clock),
    )
    groups.attach(fleet)
    return fleet


@dataclass
class Service:
    """One server and its clients for the session, since a client takes a second to make; tests change the fleet."""

    endpoint: Endpoint
    url: str
    autoscaling: Any
    ec2: Any


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    nobody = new_fleet(tmp_path_factory.mktemp("nobody"), Clock(), FakeNodes(), Heard())
    server = serve(nobody, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.port}"
    session = boto3.Session(aws_access_key_id="caller", aws_secret_access_key="x", region_name=REGION)
    once = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=20)
    autoscaling = session.client("autoscaling", endpoint_url=url, config=once)
    ec2 = session.client("ec2", endpoint_url=url, config=once)
    assert isinstance(server.app, Endpoint)
    yield Service(server.app, url, autoscaling, ec2)
    autoscaling.close()
    ec2.close()
    server.shutdown()
    thread.join()
    server.server_close()
    nobody.journal.close()


@pytest.fixture
def world(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")  # they take longer than the test
    get_backend("ec2").reset()
    clock, nodes, heard = Clock(), FakeNodes(), Heard()
    fleet = service.endpoint.fleet = new_fleet(tmp_path, clock, nodes, heard)
    yield World(fleet, clock, nodes, heard, tmp_path, service.autoscaling, service.ec2, service.url)
    fleet.journal.close()
