"""What of a cluster's nodes and pods concerns one pool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstbell.capacity.cluster_view import Node, Pod
from firstbell.capacity.groups import Group
from firstbell.capacity.joining import in_flight, never_joined
from firstbell.capacity.pool_state import PoolState
from firstbell.capacity.pools import Pool
from firstbell.capacity.resources import Resources
from firstbell.capacity.scheduling import Taint, Toleration
from firstbell.capacity.sight import PoolSight, pods_by_node, see_pool
from tests.unit.capacity.sizes import GIB, LARGE, NOW, POOL, group, member

TAINT = Taint("hub.jupyter.org/dedicated", "user")
GUARDED = replace(
    POOL,
    labels={"pool": "notebook"},
    taints=(TAINT,),
    tolerations=(Toleration(TAINT.key, "Equal", TAINT.value),),
    preemptible={"component": "user-placeholder"},
)
ONE = member(1, LARGE)
NODE = Node(
    name="node-1",
    instance_id=ONE.instance_id,
    instance_type=LARGE.instance_type,
    zone=ONE.zone,
    ready=True,
    unschedulable=False,
    allocatable=Resources(1930, 7 * GIB, pods=29),
    labels={"pool": "notebook"},
    taints=(TAINT,),
    created_at=NOW - 3600,
    ready_at=NOW - 3600,
)


def pod(name: str, **changes: Any) -> Pod:
    return Pod(
        uid=name, name=name, namespace="hub", requests=Resources(100, GIB, pods=1), node_name="node-1", **changes
    )


def see(
    *nodes: Node,
    pods: tuple[Pod, ...] = (),
    pool: Pool = GUARDED,
    of: Group | None = None,
    overhead: dict[str, Resources] | None = None,
) -> PoolSight:
    return see_pool(
        pool,
        [pool],
        of or group(LARGE, desired=1, members=(ONE,)),
        nodes,
        pods_by_node(pods),
        system_namespaces=("kube-system",),
        expected_overhead=overhead or {},
        now=NOW,
    )


def free(sight: PoolSight) -> Resources:
    (node,) = sight.sight.usable
    return node.free


@pytest.mark.parametrize(
    ("change", "usable", "waited_for"),
    [
        ({}, True, False),
        ({"ready": False, "created_at": NOW - 60}, False, True),
        ({"ready": False, "created_at": NOW - 601}, False, False),
        ({"unschedulable": True, "created_at": NOW - 60}, False, False),
        ({"taints": (TAINT, Taint("node.cilium.io/agent-not-ready")), "created_at": NOW - 60}, False, True),
        ({"taints": (TAINT, Taint("ebs.csi.aws.com/agent-not-ready", effect="NoExecute"))}, False, False),
        ({"taints": (TAINT, Taint("ToBeDeletedByClusterAutoscaler")), "created_at": NOW - 60}, False, False),
        ({"taints": (TAINT, Taint("firstbell.dev/interruption", "spot")), "created_at": NOW - 60}, False, False),
        ({"taints": (TAINT, Taint("DeletionCandidateOfClusterAutoscaler", effect="PreferNoSchedule"))}, True, False),
    ],
)
def test_a_node_is_usable_on_its_way_or_neither(change: dict[str, Any], usable: bool, waited_for: bool) -> None:
    sight = see(replace(NODE, **change)).sight
    assert bool(sight.usable) is usable
    coming = in_flight(group(LARGE, desired=1, members=(ONE,)), PoolState(), sight, [], NOW)
    assert bool(coming) is waited_for


def test_a_member_that_registered_and_never_became_usable_is_named_after_ten_minutes() -> None:
    sight = see(replace(NODE, ready=False, created_at=NOW - 650)).sight
    members = group(LARGE, desired=1, members=(ONE,))
    seen_for = PoolState(first_seen={ONE.instance_id: NOW - 700})
    assert never_joined(members, seen_for, sight, NOW) == [ONE]
    assert in_flight(members, seen_for, sight, [], NOW) == []


def test_a_node_that_served_and_broke_is_not_waited_for_and_not_called_never_joined() -> None:
    sight = see(replace(NODE, ready=False, created_at=NOW - 7200)).sight
    members = group(LARGE, desired=1, members=(ONE,))
    served = PoolState(first_seen={ONE.instance_id: NOW - 7300}, served=(ONE.instance_id,))
    assert never_joined(members, served, sight, NOW) == []
    assert in_flight(members, served, sight, [], NOW) == []


def test_nodes_of_other_groups_and_of_terminating_members_are_not_the_pools() -> None:
    leaving = replace(ONE, lifecycle="Terminating:Wait")
    assert see(NODE, of=group(LARGE, members=(leaving,))).nodes == ()
    assert see(replace(NODE, instance_id="i-other")).nodes == ()


def test_pods_take_their_requests_and_placeholders_take_nothing() -> None:
    """JupyterHub's user-placeholders give way to students."""
    placeholder = pod("placeholder", labels={"component": "user-placeholder"})
    sight = see(NODE, pods=(pod("jupyter-a"), pod("jupyter-b"), placeholder))
    assert free(sight) == NODE.allocatable - Resources(200, 2 * GIB, pods=2)
    assert [p.name for p in sight.bound] == ["jupyter-a", "jupyter-b"]


def test_daemonset_pods_that_have_yet_to_come_to_a_young_node_are_counted() -> None:
    agents = (pod("aws-node", owner_kind="DaemonSet"),)
    expected = {LARGE.instance_type: Resources(350, GIB // 2, pods=4)}
    young = replace(NODE, created_at=NOW - 30, ready_at=NOW - 20)
    assert free(see(young, pods=agents, overhead=expected)) == NODE.allocatable - Resources(350, GIB, pods=4)


def test_on_settled_nodes_what_daemonsets_take_is_measured_and_goes_before_what_is_remembered() -> None:
    agents = (pod("aws-node", owner_kind="DaemonSet"), pod("kube-proxy", mirror=True))
    sight = see(NODE, pods=agents, overhead={LARGE.instance_type: Resources(900, pods=9)})
    assert sight.overhead == {LARGE.instance_type: Resources(200, 2 * GIB, pods=2)}
    assert free(sight) == NODE.allocatable - Resources(200, 2 * GIB, pods=2)


def test_an_overcommitted_node_has_less_than_nothing_left() -> None:
    assert free(see(NODE, pods=tuple(pod(f"p{n}") for n in range(8)))).memory_bytes == -GIB


def test_waiting_pods_come_oldest_first_and_those_that_end_do_not_count() -> None:
    named: dict[str, dict[str, Any]] = {
        "late": {"created_at": NOW - 5},
        "early": {"created_at": NOW - 50},
        "ending": {"created_at": NOW - 60, "terminating": True},
        "system": {"created_at": NOW - 70, "owner_kind": "DaemonSet"},
    }
    waiting = [
        replace(pod(name, **changes), node_name="", node_selector={"pool": "notebook"}, tolerations=GUARDED.tolerations)
        for name, changes in named.items()
    ]
    assert [p.name for p in see(NODE, pods=tuple(waiting)).pending] == ["early", "late"]
