"""A school whose pool is quiet from 19:00 to 07:00, and the evening around it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from firstbell.capacity.cluster_view import Pod
from firstbell.capacity.idle_policy import IdlePolicy, Window
from firstbell.cluster.cordons import mark_of
from tests.fakes.faults import Faults
from tests.fakes.school import EIGHT, MINUTE, School, pod_request, pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from firstbell.capacity.idle_memory import IdleMemory
    from firstbell.capacity.pools import Pool
    from tests.fakes.faults import Call

HOUR = 60 * MINUTE
NOON = EIGHT + 4 * HOUR
SEVEN_PM = EIGHT + 11 * HOUR
NEXT_MORNING = EIGHT + 23 * HOUR
EVERY_DAY = tuple(range(7))
QUIET = IdlePolicy(timezone="UTC", quiet=(Window(19 * 60, 7 * 60, weekdays=EVERY_DAY),), idle_minutes=15)
WRITES = frozenset(
    {
        "annotate_node",
        "cordon",
        "uncordon",
        "evict",
        "delete_pod",
        "set_desired",
        "update_min_size",
        "update_nodegroup_min_size",
        "terminate_with_decrement",
        "detach",
        "set_protection",
    }
)


@dataclass
class Gaps(Faults):
    """Lets something happen in the gap before a call."""

    before: Callable[[str], None] = lambda call: None

    @contextmanager
    def around(self, own: list[Call], name: str, *args: Any) -> Iterator[None]:
        self.before(name)
        with super().around(own, name, *args):
            yield

    def once_before(self, call: str, happens: Callable[[], object]) -> None:
        """`happens` before the next call of this name; what it calls itself meets no gap."""

        def before(name: str) -> None:
            if name == call:
                self.before = lambda call: None
                happens()

        self.before = before


def quiet_pool(name: str = "notebook", **options: Any) -> Pool:
    return pool(name, **{"idle": QUIET, **options})


@dataclass
class Evening(School):
    pools: tuple[Pool, ...] = field(default_factory=lambda: (quiet_pool(),))
    now: float = SEVEN_PM - 20 * MINUTE
    faults: Gaps = field(default_factory=Gaps)
    lost: list[Pod] = field(default_factory=list)
    """Pods that were on a node when its instance ended, DaemonSets' left out."""

    def with_nodes(self, count: int, name: str = "notebook") -> list[str]:
        """Nodes that have been there for hours; their names."""
        now, self.now = self.now, self.now - 3 * HOUR
        self.change_group(name, desired=self.desired(name) + count)
        names = [f"node-{instance_id}" for instance_id in self.grow(name)]
        self.now = now
        return names

    def rounds(self, count: int) -> None:
        """So many evaluations, five minutes apart; instances that were ended are gone by the next."""
        for _ in range(count):
            self.idle()
            self.sweep()
            self.now += 5 * MINUTE

    def until(self, moment: float) -> None:
        while self.now < moment:
            self.rounds(1)

    def sweep(self) -> None:
        """Nodes whose instance is no member any more are gone, and whatever ran on them."""
        members = {m.instance_id for group in self.autoscaling.groups.values() for m in group.members}
        for node in list(self.cluster.node_by_name.values()):
            if node.instance_id and node.instance_id not in members:
                self.lost += [
                    p
                    for p in self.cluster.pod_by_uid.values()
                    if p.node_name == node.name and p.owner_kind != "DaemonSet"
                ]
                self.cluster.remove_node(node.name)

    def seat(self, node_name: str, **changes: Any) -> Pod:
        """A student's pod that runs on this node."""
        student = self.student()
        self.cluster.bind(student.uid, node_name)
        return self.cluster.add_pod(replace(self.cluster.pod_by_uid[student.uid], **changes))

    def system_pod(self, node_name: str, name: str = "coredns", **changes: Any) -> Pod:
        given = {"owner_kind": "ReplicaSet", "labels": {"k8s-app": "kube-dns"}, "node_name": node_name}
        return self.cluster.add_pod(
            Pod(
                uid=f"{name}-1",
                name=f"{name}-1",
                namespace="kube-system",
                requests=pod_request(0.1),
                **{**given, **changes},
            )
        )

    def nodes(self) -> set[str]:
        return set(self.cluster.node_by_name)

    def marked(self) -> set[str]:
        return {n.name for n in self.cluster.node_by_name.values() if mark_of(n, "idle")}

    def memory(self, name: str = "notebook") -> IdleMemory:
        return self.ledger.read().state(name).idle

    def sizes(self, name: str = "notebook") -> tuple[int, int, int]:
        group = self.autoscaling.groups[f"asg-{name}"]
        return group.min_size, group.desired, group.max_size

    def written(self) -> list[str]:
        """Names of the calls that wrote something to AWS or the cluster, in order."""
        return [call.name for call in self.faults.calls if call.name in WRITES]
