"""What the evicted pods need beyond the headroom, and every condition under which a group is left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstbell.capacity.cluster_view import Node, Pod
from firstbell.capacity.groups import Group, Member
from firstbell.capacity.pools import Pool
from firstbell.capacity.resources import Resources
from firstbell.capacity.sight import PoolSight, pods_by_node, see_pool
from firstbell.interruption.replacement import Doomed, Replacement, plan_replacement

T = 1_796_112_300.0
POD = Resources(cpu_millicores=500, memory_bytes=1 << 30, pods=1)
NODE = Resources(cpu_millicores=2000, memory_bytes=8 << 30, pods=20)  # four pods
POOL = Pool("dask", POD, group="dask-a")


def node(number: int, *, doomed: bool = False) -> Node:
    return Node(
        name=f"n{number}",
        instance_id=f"i-0{number}",
        instance_type="m5.large",
        zone="us-west-2a",
        ready=True,
        unschedulable=doomed,
        allocatable=NODE,
        created_at=T - 9000,
        ready_at=T - 8900,
    )


def pods(number: int, count: int) -> list[Pod]:
    return [
        Pod(uid=f"u{number}-{i}", name=f"p{number}-{i}", namespace="class", requests=POD, node_name=f"n{number}")
        for i in range(count)
    ]


class Scene:
    """`doomed` nodes with `on_doomed` pods each, and `spare` usable nodes with `on_spare` pods each."""

    def __init__(self, doomed: int, on_doomed: int, spare: int = 0, on_spare: int = 0, **group: Any) -> None:
        self.nodes = [node(n, doomed=n <= doomed) for n in range(1, doomed + spare + 1)]
        self.pods = [p for n in range(1, doomed + 1) for p in pods(n, on_doomed)]
        self.pods += [p for n in range(doomed + 1, doomed + spare + 1) for p in pods(n, on_spare)]
        members = tuple(Member(n.instance_id, "InService", n.instance_type, n.zone) for n in self.nodes)
        fields: dict[str, Any] = {"desired": len(members), "min_size": 0, "max_size": 20, "zones": ("us-west-2a",)}
        self.group = Group(name="dask-a", members=members, **{**fields, **group})
        on_node = pods_by_node(self.pods)
        self.doomed = [Doomed(n, T + i, tuple(on_node[n.name])) for i, n in enumerate(self.nodes[:doomed])]

    def sight(self, group: Group | None = None) -> PoolSight:
        return see_pool(
            POOL,
            [POOL],
            group or self.group,
            self.nodes,
            pods_by_node(self.pods),
            system_namespaces=("kube-system",),
            expected_overhead={},
            now=T + 5,
        )

    def plan(self, *mine: str, pool: Pool = POOL, group: Group | None = None, reserved: bool = False) -> Replacement:
        return plan_replacement(
            pool,
            group or self.group,
            self.sight(group),
            self.doomed,
            mine or [one.node.instance_id for one in self.doomed],
            system_namespaces=("kube-system",),
            reserved=reserved,
        )


def test_pods_that_fit_on_the_headroom_need_no_replacement() -> None:
    assert Scene(2, 2, spare=1).plan() == Replacement(released=("i-01", "i-02"))


def test_pods_beyond_the_headroom_are_replaced_by_as_many_nodes_as_they_fill() -> None:
    """Twelve pods; four fit on the spare node, eight fill two new ones."""
    assert Scene(4, 3, spare=1).plan() == Replacement(replaced=("i-01", "i-02"), released=("i-03", "i-04"))


def test_a_full_pool_is_replaced_whole() -> None:
    assert Scene(3, 4).plan() == Replacement(replaced=("i-01", "i-02", "i-03"))


def test_the_minimum_is_never_undercut() -> None:
    plan = Scene(3, 0, min_size=2).plan()
    assert (plan.released, plan.replaced) == (("i-01",), ("i-02", "i-03"))


def test_nothing_is_let_go_while_reservations_want_the_room() -> None:
    assert Scene(2, 0).plan(reserved=True) == Replacement(replaced=("i-01", "i-02"))


def test_a_group_at_its_maximum_is_replaced_all_the_same() -> None:
    """Desired stays, and the detached instance is no longer counted."""
    assert Scene(2, 4, max_size=2).plan().replaced == ("i-01", "i-02")


def test_lowering_a_group_that_levels_its_zones_is_left_alone() -> None:
    two_zones: dict[str, Any] = {"zones": ("us-west-2a", "us-west-2b")}
    assert "AZRebalance" in Scene(1, 0, **two_zones).plan().left["i-01"]
    assert Scene(1, 0, suspended=frozenset({"AZRebalance"}), **two_zones).plan().released == ("i-01",)
    assert Scene(1, 4, **two_zones).plan().replaced == ("i-01",)


@pytest.mark.parametrize(
    ("group", "why"),
    [({"capacity_rebalance": True}, "CapacityRebalance"), ({"suspended": frozenset({"Launch"})}, "Launch")],
)
def test_a_group_that_replaces_by_itself_or_may_not_launch_is_left_alone(group: dict[str, Any], why: str) -> None:
    plan = Scene(1, 4, **group).plan()
    assert (plan.replaced, plan.released) == ((), ())
    assert why in plan.left["i-01"]


def test_a_managed_node_group_is_left_alone() -> None:
    plan = Scene(1, 4).plan(pool=replace(POOL, group=None, nodegroup="dask"))
    assert "managed node group" in plan.left["i-01"]


def test_only_members_in_service_are_detached() -> None:
    scene = Scene(2, 4)
    first, second = scene.group.members
    waiting = replace(scene.group, members=(replace(first, lifecycle="Terminating:Wait"), second))
    plan = scene.plan(group=waiting)
    assert (plan.left, plan.replaced) == ({"i-01": "not InService"}, ("i-02",))


def test_a_system_pod_buys_no_node() -> None:
    scene = Scene(1, 0)
    system = replace(pods(1, 1)[0], namespace="kube-system")
    scene.doomed = [replace(scene.doomed[0], pods=(system,))]
    assert scene.plan().released == ("i-01",)


def test_two_invocations_of_one_storm_do_not_promise_the_same_places() -> None:
    """Four free places; each of two nodes has four pods: whichever is decided first, one is replaced."""
    scene = Scene(2, 4, spare=1)
    assert scene.plan("i-01").released == ("i-01",)
    assert scene.plan("i-02").replaced == ("i-02",)


def test_what_an_earlier_invocation_bought_is_not_bought_again() -> None:
    scene = Scene(2, 2)
    assert scene.plan("i-01").replaced == ("i-01",)
    after = replace(scene.group, members=scene.group.members[1:])  # i-01 detached, its replacement not launched yet
    assert scene.plan("i-02", group=after).released == ("i-02",)


@given(st.integers(1, 6), st.integers(0, 4), st.integers(0, 3), st.integers(0, 4), st.integers(0, 6))
def test_every_instance_gets_one_answer_and_the_minimum_holds(
    doomed: int, on_doomed: int, spare: int, on_spare: int, min_size: int
) -> None:
    scene = Scene(doomed, on_doomed, spare, on_spare, min_size=min(min_size, doomed + spare))
    plan = scene.plan()
    answered = [*plan.replaced, *plan.released, *plan.left]
    assert sorted(answered) == [one.node.instance_id for one in scene.doomed]
    assert scene.group.desired - len(plan.released) >= scene.group.min_size
    room = spare * (4 - on_spare) + len(plan.replaced) * 4
    assert room >= doomed * on_doomed
