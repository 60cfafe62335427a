"""What a signal costs: every call that leaves the function, counted on the wire, over the real adapters.

AWS is moto's and the API server a scripted one, so that a paginator, a retry or a second look would be seen.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from firstbell.cloud.session import Clients
from firstbell.cluster.client import ApiServer
from firstbell.cluster.kubernetes import KubernetesCluster
from firstbell.prescale.service import Prescaler
from firstbell.settings import Cluster, Deployment, Portal
from firstbell.tick.assembly import TickWiring
from tests.fakes.api_server import ScriptedApiServer, page
from tests.fakes.school import PLACES, TEACHER, RecordedTelemetry, pool

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_CALLS = 12
TABLE, BUS, REGION = "ledger", "firstbell-hub", "us-west-2"
LABELS = {"hub.jupyter.org/pool-name": "notebook"}
TOLERATION = {"key": "hub.jupyter.org/dedicated", "operator": "Equal", "value": "notebook"}


def a_pod(number: int, node: str = "") -> dict[str, Any]:
    """A student's server with its home volume."""
    request = {"cpu": "100m", "memory": "2Gi"}
    return {
        "metadata": {
            "uid": f"u{number}",
            "name": f"jupyter-{number}",
            "namespace": "hub",
            "creationTimestamp": "2026-12-01T08:00:00Z",
        },
        "spec": {
            "nodeName": node,
            "nodeSelector": LABELS,
            "tolerations": [TOLERATION],
            "containers": [{"name": "notebook", "resources": {"requests": request}}],
            "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": f"home-{number}"}}],
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def a_daemonset() -> dict[str, Any]:
    container = {"name": "agent", "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}}
    spec = {"containers": [container], "tolerations": [{"operator": "Exists"}]}
    return {
        "metadata": {"name": "aws-node", "namespace": "kube-system"},
        "spec": {"template": {"spec": spec}},
    }


class Deployed:
    """The product wired for one warm environment; `calls` are those since the last `forget`."""

    def __init__(self, clients: Clients, server: ScriptedApiServer) -> None:
        self.server = server
        self.aws: list[str] = []
        telemetry = RecordedTelemetry()
        portal = Portal("teachers", *TEACHER, max_pods=50_000, max_reserved_hours=24)
        settings = Cluster("hub", REGION, "notebook", (pool(),), (portal,), regions={REGION: "hub"})
        self.wiring = TickWiring(telemetry.log, settings, Deployment(BUS, TABLE), clients)
        self.wiring.__dict__["telemetry"] = telemetry
        api = ApiServer(server.endpoint, server.ca_data, lambda: "token", time.time)
        self.wiring.__dict__["cluster"] = KubernetesCluster(api)
        self.close = api.close
        for service in (clients.autoscaling, clients.dynamodb, clients.ec2, clients.events):
            service.meta.events.register_first("before-send", self._count)

    def _count(self, request: Any, event_name: str, **_: Any) -> None:
        self.aws.append(event_name.removeprefix("before-send."))

    @property
    def calls(self) -> list[str]:
        return [*self.aws, *(f"{request.method} {request.path}" for request in self.server.requests)]

    def forget(self) -> None:
        self.aws.clear()
        self.server.requests.clear()

    def deliver(self, reference: str, pods: int) -> None:
        account, source = TEACHER
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        detail = {"region": REGION, "pods": pods, "reference": reference}
        wiring = self.wiring
        Prescaler(
            settings=wiring.settings,
            ledger=wiring.ledger,
            bus=wiring.bus,
            reconciler=wiring.reconciler(f"run-{reference}", thorough=False),
            read=wiring.reading,
            telemetry=wiring.telemetry,
            clock=time.time,
        ).take(
            {
                "id": f"event-{reference}",
                "detail-type": "Demand Signal",
                "source": source,
                "account": account,
                "time": now,
                "detail": detail,
            }
        )

    def tick(self) -> None:
        self.wiring.ticker("tick").tick()

    def desired(self) -> int:
        return self.wiring.autoscaling.describe(["asg-notebook"])["asg-notebook"].desired


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("FIRSTBELL_QUEUE_URL", "https://sqs.us-west-2.amazonaws.com/123456789012/unused")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws(), ScriptedApiServer() as server:
        clients = Clients()
        key = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
        clients.dynamodb.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=key,  # type: ignore[arg-type]
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        )
        clients.events.create_event_bus(Name=BUS)
        clients.ec2.create_launch_template(
            LaunchTemplateName="notebook",
            LaunchTemplateData={"InstanceType": "m5.xlarge", "ImageId": "ami-12c6146b"},
        )
        clients.autoscaling.create_auto_scaling_group(
            AutoScalingGroupName="asg-notebook",
            LaunchTemplate={"LaunchTemplateName": "notebook", "Version": "$Default"},
            MinSize=0,
            MaxSize=500,
            DesiredCapacity=0,
            AvailabilityZones=["us-west-2a", "us-west-2b"],
        )
        for path in ("/api/v1/nodes", "/api/v1/persistentvolumes", "/apis/storage.k8s.io/v1/csinodes"):
            server.answer("GET", path, page([]))
        server.answer("GET", "/api/v1/pods", page([a_pod(n) for n in range(3)]))
        server.answer("GET", "/apis/apps/v1/daemonsets", page([a_daemonset()]))
        made = Deployed(clients, server)
        yield made
        made.close()


@pytest.mark.parametrize("pods", [2 * PLACES, 3000])
def test_a_warm_signal_makes_at_most_twelve_calls_whatever_its_size(deployed: Deployed, pods: int) -> None:
    """At its dearest: waiting pods with volumes, a type of which no node was seen, a group that has to grow."""
    deployed.deliver("bio101", PLACES)
    before = deployed.desired()
    deployed.forget()
    deployed.deliver("chem202", pods)
    calls = deployed.calls
    assert deployed.desired() > before
    assert "GET /api/v1/persistentvolumes" in calls
    assert len(calls) <= MOST_CALLS, calls


def test_a_signal_that_the_headroom_or_nodes_on_their_way_cover_costs_less(deployed: Deployed) -> None:
    deployed.deliver("bio101", 1)
    deployed.forget()
    deployed.deliver("chem202", 1)
    assert "auto-scaling.SetDesiredCapacity" not in deployed.calls
    assert len(deployed.calls) <= MOST_CALLS - 2


def test_a_tick_without_live_work_reads_the_ledger_and_pending_pods_only(deployed: Deployed) -> None:
    deployed.tick()
    assert deployed.calls == ["dynamodb.Query", "dynamodb.Query", "GET /api/v1/pods"]
    (request,) = deployed.server.requests
    assert request.query["fieldSelector"] == "spec.nodeName=,status.phase=Pending"


def test_pages_of_pods_are_the_only_calls_that_grow_with_the_cluster(deployed: Deployed) -> None:
    deployed.deliver("bio101", PLACES)
    pages = [page([a_pod(n) for n in range(3)], more="next"), page([a_pod(n) for n in range(3, 6)])]
    deployed.server.answer("GET", "/api/v1/pods", *pages)
    deployed.forget()
    deployed.deliver("chem202", 40)
    further = [r for r in deployed.server.requests if "continue" in r.query]
    assert len(further) == 1
    assert len(deployed.calls) - len(further) <= MOST_CALLS
