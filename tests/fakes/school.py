"""A school in memory: the real prescale and tick over fakes; groups launch, nodes join, students come.

Time stands still until a test moves it.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from firstbell.capacity.cluster_view import Node, Pod
from firstbell.capacity.groups import Activity, Group
from firstbell.capacity.instance_types import InstanceTypeFacts
from firstbell.capacity.pools import Pool, pool_of
from firstbell.capacity.resources import Resources
from firstbell.capacity.scheduling import Taint, Toleration, selects, tolerated
from firstbell.idle.service import Idler
from firstbell.idle.sizes import MinSizes
from firstbell.idle.telling import Teller
from firstbell.idle.visit import Visitor
from firstbell.outcomes import rfc3339
from firstbell.prescale.service import Prescaler
from firstbell.reconcile.arrivals import StageClock
from firstbell.reconcile.look import Looker
from firstbell.reconcile.reading import ClusterReading
from firstbell.reconcile.reconciler import Reconciler
from firstbell.settings import Cluster, Portal
from firstbell.telemetry import METRICS, Telemetry
from firstbell.tick.aftermath import Aftermath
from firstbell.tick.service import Ticker
from tests.fakes import FakeAutoScaling, FakeBus, FakeCluster, FakeEks, FakeInstances, FakeInstanceTypes, Faults
from tests.fakes.drain_ledger import FakeDrainLedger
from tests.fakes.interruption_queue import FakeQueue
from tests.fakes.ledger import FakeLedger

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE = 60.0
EIGHT = 1_796_112_000.0
"""Some morning, 08:00 in UTC."""
GIB = 2**30
TEACHER = ("111122223333", "edu.portal")
XLARGE = InstanceTypeFacts(
    name="m5.xlarge", vcpus=4, memory_mib=16384, enis=4, ipv4_per_eni=15, nitro=True, architecture="x86_64"
)
PLACES = 7
"""Places for a `pod()` on a node of the school's: 2 GiB each of some 14 GiB."""


def taint(pool: str) -> Taint:
    return Taint("hub.jupyter.org/dedicated", pool)


def pool(name: str = "notebook", **options: Any) -> Pool:
    taints = (taint(name),)
    return Pool(
        name=name,
        pod=pod_request(),
        labels={"hub.jupyter.org/pool-name": name},
        taints=taints,
        tolerations=(Toleration("hub.jupyter.org/dedicated", "Equal", name),),
        group=f"asg-{name}",
        **{"lead_minutes": 5, **options},
    )


def pod_request(gib: float = 2) -> Resources:
    return Resources(cpu_millicores=100, memory_bytes=int(gib * GIB), pods=1)


class RecordedTelemetry(Telemetry):
    """Keeps what would have been printed."""

    def __init__(self) -> None:
        self.log = Logger(service="test", level="CRITICAL")
        self.values: list[tuple[str, float, dict[str, str]]] = []

    def emit(self, name: str, value: float = 1, **dimensions: str) -> None:
        assert set(dimensions) == set(METRICS[name].dimensions), name
        self.values.append((name, value, dimensions))

    def total(self, name: str) -> float:
        return sum(value for metric, value, _ in self.values if metric == name)


@dataclass
class School:
    pools: tuple[Pool, ...] = field(default_factory=lambda: (pool(),))
    max_size: int = 20
    max_pods: int = 10_000
    now: float = EIGHT - 5 * MINUTE
    faults: Faults = field(default_factory=Faults)

    def __post_init__(self) -> None:
        portals = (Portal("teachers", *TEACHER, max_pods=self.max_pods, max_reserved_hours=24),)
        regions = {"us-west-2": "hub", "eu-west-1": "isle"}
        self.settings = Cluster("hub", "us-west-2", self.pools[0].name, self.pools, portals, regions=regions)
        groups = [
            Group(str(p.group), 0, 0, self.max_size, instance_types=("m5.xlarge",), zones=("us-west-2a",))
            for p in self.pools
        ]
        self.autoscaling = FakeAutoScaling(groups, clock=self.clock, faults=self.faults)
        self.cluster = FakeCluster(clock=self.clock, faults=self.faults)
        self.cluster.controls_nodes = True
        self.ledger = FakeLedger(self.faults)
        self.drain_ledger = FakeDrainLedger(self.faults)
        self.queue = FakeQueue(self.clock, self.faults)
        self.instances = FakeInstances(self.faults)
        self.bus = FakeBus(self.faults)
        self.eks = FakeEks(faults=self.faults)
        self.instance_types = FakeInstanceTypes([XLARGE], self.faults)
        self.telemetry = RecordedTelemetry()
        self._numbers = itertools.count(1)

    def clock(self) -> float:
        return self.now

    def group_name(self, pool: Pool) -> str:
        return pool.group or self.eks.group_of_nodegroup(self.settings.name, pool.nodegroup or "")

    # the product

    def reconciler(self, *, thorough: bool) -> Reconciler:
        looker = Looker(
            settings=self.settings,
            autoscaling=self.autoscaling,
            instance_types=self.instance_types,
            telemetry=self.telemetry,
            group_name=self.group_name,
            connect=lambda: self.cluster,
            thorough=thorough,
        )
        return Reconciler(
            ledger=self.ledger,
            looker=looker,
            bus=self.bus,
            telemetry=self.telemetry,
            clock=self.clock,
            holder=f"run-{next(self._numbers)}",
            stages=StageClock(lambda: self.cluster, self.telemetry) if thorough else None,
        )

    def reading(self) -> ClusterReading:
        return ClusterReading(lambda: self.cluster, self.settings)

    def deliver(self, event: Mapping[str, Any]) -> None:
        """One invocation of prescale."""
        Prescaler(
            settings=self.settings,
            ledger=self.ledger,
            bus=self.bus,
            reconciler=self.reconciler(thorough=False),
            read=self.reading,
            telemetry=self.telemetry,
            clock=self.clock,
            sleep=lambda _: None,
        ).take(json.loads(json.dumps(event)))

    def tick(self) -> None:
        """One invocation of tick."""
        Ticker(
            settings=self.settings,
            ledger=self.ledger,
            reconciler=self.reconciler(thorough=True),
            aftermath=Aftermath(
                settings=self.settings,
                ledger=self.drain_ledger,
                queue=self.queue,
                autoscaling=self.autoscaling,
                instances=self.instances,
                connect=lambda: self.cluster,
                telemetry=self.telemetry,
                clock=self.clock,
            ),
            read=self.reading,
            connect=lambda: self.cluster,
            telemetry=self.telemetry,
            clock=self.clock,
        ).tick()

    def idle(self, *, seconds_left: float = 240) -> None:
        """One evaluation of idle nodes."""
        visitor = Visitor(
            settings=self.settings,
            ledger=self.ledger,
            autoscaling=self.autoscaling,
            sizes=MinSizes(self.autoscaling, self.eks, self.settings.name),
            connect=lambda: self.cluster,
            teller=Teller(self.bus, self.settings.name, self.telemetry),
            telemetry=self.telemetry,
            clock=self.clock,
            sleep=lambda _: None,
            seconds_left=lambda: seconds_left,
            holder=f"idle-{next(self._numbers)}",
        )
        reconciler = self.reconciler(thorough=False)
        Idler(
            visitor=visitor,
            group_name=self.group_name,
            bring_to_size=lambda p: reconciler.bring_to_size([p], self.reading, changed=False),
        ).evaluate()

    # what happens around it

    def event(self, detail: Any, *, detail_type: str = "Demand Signal", **envelope: Any) -> dict[str, Any]:
        account, source = TEACHER
        return {
            "version": "0",
            "id": f"event-{next(self._numbers)}",
            "detail-type": detail_type,
            "source": source,
            "account": account,
            "time": rfc3339(self.now),
            "region": "us-west-2",
            "resources": [],
            "detail": detail,
        } | envelope

    def signal(self, pods: int = 30, reference: str = "bio101", **detail: Any) -> dict[str, Any]:
        return self.event({"region": "us-west-2", "pods": pods, "reference": reference} | detail)

    def minutes(self, count: float) -> None:
        self.now += count * MINUTE

    def launch(self, name: str = "notebook") -> list[str]:
        """The group launches what it has been asked for."""
        return self.autoscaling.launch(f"asg-{name}")

    def join(self, instance_ids: list[str], name: str = "notebook") -> None:
        """The instances' nodes are Ready."""
        for instance_id in instance_ids:
            self.cluster.add_node(
                Node(
                    name=f"node-{instance_id}",
                    instance_id=instance_id,
                    instance_type="m5.xlarge",
                    zone="us-west-2a",
                    ready=True,
                    unschedulable=False,
                    allocatable=Resources(3920, int(14.3 * GIB), 18 * GIB, 58, volumes=25),
                    labels={"hub.jupyter.org/pool-name": name},
                    taints=(taint(name),),
                    created_at=self.now,
                    ready_at=self.now,
                )
            )

    def grow(self, name: str = "notebook") -> list[str]:
        launched = self.launch(name)
        self.join(launched, name)
        return launched

    def student(self, reference: str | None = None, name: str = "notebook", gib: float = 2) -> Pod:
        """A student's server is created; `schedule` finds it a node."""
        number = next(self._numbers)
        return self.cluster.add_pod(
            Pod(
                uid=f"u{number}",
                name=f"jupyter-{number}",
                namespace="hub",
                requests=pod_request(gib),
                created_at=self.now,
                labels={"firstbell.dev/reference": reference} if reference else {},
                node_selector={"hub.jupyter.org/pool-name": name},
                tolerations=(Toleration("hub.jupyter.org/dedicated", "Equal", name),),
            )
        )

    def schedule(self) -> int:
        """Binds waiting pods to nodes that have room, as a scheduler would; how many still wait."""
        for waiting in [p for p in self.cluster.pod_by_uid.values() if not p.bound]:
            for node in self.cluster.node_by_name.values():
                if self._fits(waiting, node):
                    self.cluster.bind(waiting.uid, node.name)
                    break
        return sum(not p.bound for p in self.cluster.pod_by_uid.values())

    def _fits(self, waiting: Pod, node: Node) -> bool:
        taken = sum((p.requests for p in self.cluster.pod_by_uid.values() if p.node_name == node.name), Resources())
        return (
            node.ready
            and not node.unschedulable
            and selects(waiting.node_selector, node.labels)
            and tolerated(node.taints, waiting.tolerations)
            and (node.allocatable - taken).covers(waiting.requests)
        )

    def fail_launches(self, message: str, name: str = "notebook") -> None:
        """The group tries to launch and AWS refuses."""
        activities = self.autoscaling.activity_list.setdefault(f"asg-{name}", [])
        activities.append(
            Activity(f"a{len(activities)}", "Failed", "Launching a new EC2 instance", "", message, self.now, self.now)
        )

    # what came of it

    def desired(self, name: str = "notebook") -> int:
        return self.autoscaling.groups[f"asg-{name}"].desired

    def change_group(self, name: str = "notebook", **changes: Any) -> None:
        group = self.autoscaling.groups[f"asg-{name}"]
        self.autoscaling.groups[group.name] = replace(group, **changes)

    def said(self, detail_type: str) -> list[dict[str, Any]]:
        return self.bus.details(detail_type)

    def pool_named(self, waiting: Pod) -> Pool | None:
        return pool_of(waiting, self.pools)
