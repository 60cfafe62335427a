"""Which pods a pool has yet to have room for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstbell.capacity.cluster_view import Pod
from firstbell.capacity.demand import UNRESERVED, PoolDemand, is_user_pod, pending_pods_of, pool_demand
from firstbell.capacity.pools import Pool
from firstbell.capacity.reservations import REFERENCE_LABEL, Reservation
from firstbell.capacity.scheduling import Taint, Toleration
from tests.unit.capacity.sizes import NOW, POOL, pod, reservation

LEAD = 300.0
TAINT = Taint("hub.jupyter.org/dedicated", "user")
TOLERATION = Toleration(TAINT.key, "Equal", TAINT.value)
GUARDED = replace(POOL, labels={"pool": "notebook"}, taints=(TAINT,), tolerations=(TOLERATION,))


def student(number: int, reference: str | None = None, **changes: Any) -> Pod:
    made = Pod(
        uid=f"u{number}",
        name=f"jupyter-{number}",
        namespace="hub",
        requests=pod(),
        created_at=NOW,
        labels={REFERENCE_LABEL: reference} if reference else {},
    )
    return replace(made, **changes)


def students(count: int, reference: str | None = None, **changes: Any) -> list[Pod]:
    return [student(n, reference, **changes) for n in range(count)]


def demand(*live: Reservation, bound: list[Pod] | None = None, pending: list[Pod] | None = None) -> PoolDemand:
    return pool_demand(POOL, live, bound=bound or [], pending=pending or [], lead_seconds=LEAD)


def test_a_reservation_asks_for_its_pods_less_those_that_arrived() -> None:
    found = demand(reservation(pods=30), bound=students(12, "bio101"))
    assert (found.pods("bio101"), found.arrived) == (18, {"bio101": 12})


@pytest.mark.parametrize(("pending", "asked"), [(0, 30), (10, 30), (30, 30), (34, 34)])
def test_a_pending_pod_is_counted_once(pending: int, asked: int) -> None:
    found = demand(reservation(pods=30), pending=students(pending, "bio101"))
    assert found.pods("bio101") == asked


@pytest.mark.parametrize(("pending", "beyond"), [(10, 0), (30, 0), (33, 3)])
def test_pending_pods_without_a_reference_are_part_of_what_is_reserved_and_then_beyond_it(
    pending: int, beyond: int
) -> None:
    found = demand(reservation(pods=30), pending=students(pending))
    assert (found.pods("bio101"), found.pods(UNRESERVED)) == (30, beyond)


def test_pods_without_a_reference_fill_the_reservation_that_starts_first() -> None:
    later = reservation("chem202", 10, starts_at=NOW + 60)
    found = demand(later, reservation("bio101", 5), bound=students(7))
    assert found.arrived == {"bio101": 5, "chem202": 2}


def test_a_pod_with_a_reference_leaves_the_places_of_others_alone() -> None:
    found = demand(reservation("bio101", 5), reservation("chem202", 5), bound=students(5, "chem202"))
    assert found.arrived == {"bio101": 0, "chem202": 5}


def test_more_may_arrive_under_a_reference_than_were_announced() -> None:
    found = demand(reservation(pods=5), bound=students(8, "bio101"))
    assert (found.arrived, found.pods("bio101")) == ({"bio101": 8}, 0)


def test_pods_that_were_there_before_its_lead_did_not_come_for_it() -> None:
    early = students(4, created_at=NOW - LEAD - 1)
    in_time = students(3, created_at=NOW - LEAD)
    found = demand(reservation(pods=30), bound=[*early, *in_time])
    assert found.arrived == {"bio101": 3}


def test_pods_of_several_sizes_are_demand_with_their_own() -> None:
    large = student(99, "bio101", requests=pod(1000, 8))
    found = demand(reservation(pods=3), pending=[large])
    assert sorted((item.shape.requests.memory_bytes // 2**30, item.pods) for item in found.items) == [(2, 2), (8, 1)]


def test_without_a_live_reservation_there_is_no_demand() -> None:
    assert demand(pending=students(5)) == PoolDemand()


def test_a_reference_that_nobody_reserved_is_demand_beside_the_reservations() -> None:
    found = demand(reservation(pods=3), pending=students(2, "unknown"))
    assert (found.pods("bio101"), found.pods(UNRESERVED)) == (3, 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"owner_kind": "DaemonSet"},
        {"mirror": True},
        {"namespace": "kube-system"},
        {"labels": {"component": "user-placeholder"}},
    ],
)
def test_agents_system_pods_and_placeholders_are_no_users(changes: dict[str, Any]) -> None:
    preemptible = replace(POOL, preemptible={"component": "user-placeholder"})
    assert is_user_pod(student(1), preemptible, ["kube-system"])
    assert not is_user_pod(student(1, **changes), preemptible, ["kube-system"])


def test_a_pod_waits_for_the_first_pool_that_it_selects_and_tolerates() -> None:
    second = replace(GUARDED, name="second")
    mine = student(1, node_selector={"pool": "notebook"}, tolerations=(TOLERATION,))
    others = [
        student(2, node_selector={"pool": "gpu"}, tolerations=(TOLERATION,)),
        student(3, node_selector={"pool": "notebook"}),
        student(4, tolerations=(TOLERATION,), node_name="node-1", node_selector={"pool": "notebook"}),
    ]
    pools: list[Pool] = [GUARDED, second]
    assert pending_pods_of(GUARDED, pools, [mine, *others], ["kube-system"]) == [mine]
    assert pending_pods_of(second, pools, [mine, *others], ["kube-system"]) == []


references = st.sampled_from(["bio101", "chem202", "unknown", None])
pods = st.lists(st.tuples(references, st.integers(-900, 900)), max_size=40)


@given(st.integers(1, 30), st.integers(1, 30), pods, pods)
def test_every_pending_pod_is_demand_once_and_no_reservation_asks_for_less_than_it_waits_for(
    bio: int, chem: int, bound: list[tuple[str | None, int]], pending: list[tuple[str | None, int]]
) -> None:
    there = [student(n, reference, created_at=NOW + age) for n, (reference, age) in enumerate(bound)]
    waiting = [student(100 + n, reference, created_at=NOW + age) for n, (reference, age) in enumerate(pending)]
    found = demand(reservation("bio101", bio), reservation("chem202", chem), bound=there, pending=waiting)
    total = sum(item.pods for item in found.items)
    outstanding = {
        reference: max(0, asked - found.arrived[reference]) for reference, asked in (("bio101", bio), ("chem202", chem))
    }
    assert all(found.pods(reference) >= count for reference, count in outstanding.items())
    assert max(len(waiting), sum(outstanding.values())) <= total <= len(waiting) + sum(outstanding.values())
    assert sum(found.arrived.values()) <= len(there)
