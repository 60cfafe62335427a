"""A pool whose instances go: the real drainer over fakes, on a clock that moves from message to message."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from firstbell.capacity.cluster_view import Node, Pod
from firstbell.capacity.groups import Group, Member
from firstbell.capacity.pools import InterruptionPolicy, Pool
from firstbell.capacity.resources import Resources
from firstbell.cloud.autoscaling import LifecycleHook
from firstbell.cloud.capacity_reservations import CapacityReservations
from firstbell.interruption.claiming import Claimer
from firstbell.interruption.cordon import Cordoner
from firstbell.interruption.evict import Evictor
from firstbell.interruption.finish import Finisher
from firstbell.interruption.intake import read_batch
from firstbell.interruption.replace import Replacer
from firstbell.interruption.service import Drainer
from firstbell.interruption.surroundings import Surveyor
from firstbell.interruption.telling import Teller
from firstbell.outcomes import rfc3339
from firstbell.settings import Cluster
from tests.fakes import FakeAutoScaling, FakeBus, FakeCluster, FakeLoadBalancers, Faults
from tests.fakes.drain_ledger import FakeDrainLedger
from tests.fakes.interruption_queue import FakeQueue
from tests.fakes.ledger import FakeLedger
from tests.fakes.school import RecordedTelemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from firstbell.capacity.drains import Drain
    from firstbell.interruption.notices import Message

R = TypeVar("R")

T = 1_796_112_300.0
"""Some morning, 08:05 in UTC: when notices are sent."""
GROUP = "notebook-a"
HOOK = "firstbell-drain"
TARGETS = ("arn:aws:elasticloadbalancing:us-west-2:111122223333:targetgroup/hub/1",)
SIZE = Resources(cpu_millicores=4000, memory_bytes=16 << 30, pods=20)
POD = Resources(cpu_millicores=200, memory_bytes=1 << 30, pods=1)


class Inline(Executor):
    """Runs work where it is submitted, so that the order of calls is the same each time."""

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        done: Future[R] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001  # as a pool's thread does: the caller gets it
            done.set_exception(error)
        return done


class FakeReservations(CapacityReservations):
    def __init__(self, members: dict[str, list[str]]) -> None:
        self.members = members

    def instances(self, reservation_id: str) -> list[str]:
        return self.members.get(reservation_id, [])


@dataclass
class Scene:
    """`nodes` members i-01, i-02... in service, each with a Ready node n1, n2... and `pods` students on each."""

    nodes: int = 1
    pods: int = 2
    policy: InterruptionPolicy = field(default_factory=InterruptionPolicy)
    pool_options: dict[str, Any] = field(default_factory=dict)
    group_options: dict[str, Any] = field(default_factory=dict)
    heartbeat_seconds: int = 300
    now: float = T
    faults: Faults = field(default_factory=Faults)
    seconds_left: float = 15.0
    settled_at: float = T
    """When an invocation last changed anything: afterwards only stale messages are acknowledged."""

    def __post_init__(self) -> None:
        pool = Pool("notebook", POD, group=GROUP, interruption=self.policy)
        self.pool = replace(pool, **self.pool_options)
        self.settings = Cluster("hub", "us-west-2", "notebook", (self.pool,))
        members = tuple(Member(f"i-0{n}", "InService", "m5.xlarge", "us-west-2a") for n in range(1, self.nodes + 1))
        group: dict[str, Any] = {"desired": self.nodes, "min_size": 0, "max_size": 50, "zones": ("us-west-2a",)}
        group |= {"target_group_arns": TARGETS} | self.group_options
        self.autoscaling = FakeAutoScaling(
            [Group(GROUP, members=members, **group)], clock=self.clock, faults=self.faults
        )
        terminating = "autoscaling:EC2_INSTANCE_TERMINATING"
        times = (self.heartbeat_seconds, self.heartbeat_seconds * 100)
        self.autoscaling.hooks[GROUP] = [
            LifecycleHook(name, terminating, *times, "CONTINUE") for name in (HOOK, "somebody-elses")
        ]
        self.cluster = FakeCluster(clock=self.clock, faults=self.faults)
        for n in range(1, self.nodes + 1):
            self.cluster.add_node(node(n))
            for i in range(1, self.pods + 1):
                self.cluster.add_pod(pod(f"nb-{n}-{i}", n))
        self.ledger = FakeDrainLedger(self.faults)
        self.reservation_ledger = FakeLedger(self.faults)
        self.queue = FakeQueue(self.clock, self.faults)
        self.bus = FakeBus(self.faults)
        self.load_balancers = FakeLoadBalancers(self.faults)
        self.telemetry = RecordedTelemetry()
        self.reservations: dict[str, list[str]] = {}
        self._numbers = itertools.count(1)

    def clock(self) -> float:
        return self.now

    def drainer(self) -> Drainer:
        threads = Inline()
        return Drainer(
            ledger=self.ledger,
            queue=self.queue,
            teller=Teller(self.bus, "hub", self.telemetry),
            telemetry=self.telemetry,
            surveyor=Surveyor(
                settings=self.settings,
                ledger=self.ledger,
                autoscaling=self.autoscaling,
                reservations=FakeReservations(self.reservations),
                cluster=self.cluster,
                group_name=lambda pool: str(pool.group or f"eks-{pool.nodegroup}"),
                threads=threads,
            ),
            claimer=Claimer(self.ledger, self.queue, self.clock),
            cordoner=Cordoner(self.cluster, self.ledger, self.load_balancers, self.telemetry, self.clock),
            evictor=Evictor(self.cluster, threads, self.telemetry, self.clock, lambda: self.seconds_left),
            finisher=Finisher(self.cluster, self.autoscaling, self.telemetry, self.clock),
            replacer=lambda: Replacer(
                settings=self.settings,
                cluster=self.cluster,
                autoscaling=self.autoscaling,
                ledger=self.reservation_ledger,
                drains=self.ledger,
                telemetry=self.telemetry,
                clock=self.clock,
                holder="run",
            ),
            threads=threads,
            clock=self.clock,
        )

    # what arrives

    def put(self, kind: str, detail: dict[str, Any], *, source: str = "aws.ec2", event: str = "") -> str:
        envelope = {
            "version": "0",
            "id": event or f"event-{next(self._numbers)}",
            "detail-type": kind,
            "source": source,
            "account": "111122223333",
            "time": rfc3339(self.now),
            "region": "us-west-2",
            "resources": [],
            "detail": detail,
        }
        return self.queue.put(json.dumps(envelope))

    def spot(self, *instance_ids: str, event: str = "") -> None:
        for instance_id in instance_ids or ("i-01",):
            detail = {"instance-id": instance_id, "instance-action": "terminate"}
            self.put("EC2 Spot Instance Interruption Warning", detail, event=event)

    def rebalance(self, instance_id: str = "i-01") -> None:
        self.put("EC2 Instance Rebalance Recommendation", {"instance-id": instance_id})

    def state(self, state: str, instance_id: str = "i-01") -> None:
        self.put("EC2 Instance State-change Notification", {"instance-id": instance_id, "state": state})

    def terminate(self, instance_id: str = "i-01", *, hook: str = HOOK, flat: bool = False) -> None:
        """Auto Scaling terminates a member, and waits at the hook."""
        self.change_member(instance_id, lifecycle="Terminating:Wait")
        self.autoscaling.active_actions.add((GROUP, hook, instance_id))
        self.hook_notice(instance_id, hook=hook, flat=flat)

    def hook_notice(self, instance_id: str = "i-01", *, hook: str = HOOK, flat: bool = False) -> None:
        detail = {
            "LifecycleActionToken": "t1",
            "AutoScalingGroupName": GROUP,
            "LifecycleHookName": hook,
            "EC2InstanceId": instance_id,
            "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        }
        if flat:
            self.queue.put(json.dumps({**detail, "Service": "AWS Auto Scaling", "Time": rfc3339(self.now)}))
        else:
            self.put("EC2 Instance-terminate Lifecycle Action", detail, source="aws.autoscaling")

    def drill(self, kind: str, *instance_ids: str) -> None:
        detail = {"kind": kind, "instance_ids": list(instance_ids or ("i-01",))}
        self.put("Drill", detail, source="firstbell.drill")

    def change_member(self, instance_id: str, **changes: Any) -> None:
        group = self.autoscaling.groups[GROUP]
        members = tuple(replace(m, **changes) if m.instance_id == instance_id else m for m in group.members)
        self.autoscaling.groups[GROUP] = replace(group, members=members)

    def change_node(self, number: int = 1, **changes: Any) -> None:
        self.cluster.add_node(replace(self.cluster.node_by_name[f"n{number}"], **changes))

    # what happens then

    def invoke(self, most: int = 10) -> list[str]:
        """One invocation with what is visible. Returns the ids of the messages that come back."""
        before = self._result()
        try:
            return sorted(self._work(self.queue.receive(most)))
        finally:
            if self._result() != before:
                self.settled_at = self.now

    def _result(self) -> tuple[int, ...]:
        return len(self.cluster.pod_by_uid), len(self.autoscaling.completed), len(self.bus.events)

    def run(self, *, until: float = T + 4000, invocations: int = 400) -> None:
        """Invocations, one after the other, until the queue is empty or the time is over."""
        for _ in range(invocations):
            at = self.queue.next_at
            if at is None:
                return
            if at > until:
                self.now = until
                return
            self.now = max(self.now, at)
            self.invoke()
        raise AssertionError(f"still going round after {invocations} invocations")

    def _work(self, messages: Sequence[Message]) -> set[str]:
        batch = read_batch(messages, self.settings.pools)
        failed = self.drainer().drain(batch.asked) if batch.asked else set()
        self.queue.delete([message.id for message in messages if message.id not in failed])
        return failed

    # what came of it

    def calls(self, *names: str) -> list[tuple[Any, ...]]:
        return [(call.name, *call.args) for call in self.faults.calls if call.name in names]

    def evicted(self) -> list[str]:
        return [str(call[1]) for call in self.calls("evict")]

    def pods_left(self) -> list[str]:
        return sorted(pod.name for pod in self.cluster.pod_by_uid.values())

    def drain(self, instance_id: str = "i-01") -> Drain:
        drain = self.ledger.drain(instance_id)
        assert drain is not None, f"no drain of {instance_id}"
        return drain

    def said(self, detail_type: str) -> list[dict[str, Any]]:
        return self.bus.details(detail_type)

    def ignored(self, reason: str) -> float:
        return sum(
            v for name, v, dims in self.telemetry.values if name == "NoticesIgnored" and dims["reason"] == reason
        )


def node(number: int, **changes: Any) -> Node:
    fields: dict[str, Any] = {
        "name": f"n{number}",
        "instance_id": f"i-0{number}",
        "instance_type": "m5.xlarge",
        "zone": "us-west-2a",
        "ready": True,
        "unschedulable": False,
        "allocatable": SIZE,
        "created_at": T - 9000,
        "ready_at": T - 8900,
    }
    return Node(**{**fields, **changes})


def pod(name: str, number: int = 1, **changes: Any) -> Pod:
    fields: dict[str, Any] = {
        "uid": f"u-{name}",
        "name": name,
        "namespace": "class",
        "requests": POD,
        "node_name": f"n{number}",
        "created_at": T - 600,
        "owner_kind": "ReplicaSet",
    }
    return Pod(**{**fields, **changes})
