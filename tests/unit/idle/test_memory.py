"""What is remembered between two evaluations."""

from __future__ import annotations

import json

from firstbell.capacity.demand import UNRESERVED
from firstbell.capacity.idle_memory import IdleMemory
from firstbell.capacity.placement import Demand, FreeNode, PodShape
from firstbell.capacity.pool_state import PoolState, state_from_document
from firstbell.capacity.resources import Resources
from firstbell.capacity.spare import fewest_needed, waiting_demand
from tests.unit.idle.nodes import NOW, pod

HOUR = 3600.0


def test_it_survives_the_ledger() -> None:
    memory = IdleMemory(idle_since={"i-a": NOW}, marked=("i-a",), leaving={"i-a": NOW}, min_before=2, kept="x")
    stored = json.loads(json.dumps(PoolState(idle=memory).as_document()))
    assert state_from_document(stored).idle == memory


def test_a_state_of_a_version_without_it_reads_as_nothing_remembered() -> None:
    stored = PoolState().as_document()
    del stored["idle"]
    assert state_from_document(stored).idle == IdleMemory()
    assert state_from_document({**stored, "idle": {"marked": ["i-a"], "of_a_later_version": 1}}).idle.marked == ("i-a",)


def test_a_node_is_idle_since_the_first_of_the_looks_that_all_found_it_so() -> None:
    memory = (
        IdleMemory().seen_idle(["i-a", "i-b"], NOW).seen_idle(["i-b"], NOW + 300).seen_idle(["i-a", "i-b"], NOW + 600)
    )
    assert memory.idle_since == {"i-a": NOW + 600, "i-b": NOW}


def test_node_hours_are_counted_from_the_removal_to_the_replacement() -> None:
    memory, hours = IdleMemory(counted_at=NOW).without("i-a").without("i-b").counted(0, NOW + HOUR, "2026-12-01")
    assert hours == 2.0
    memory, hours = memory.counted(1, NOW + 2 * HOUR, "2026-12-01")
    assert (hours, memory.away) == (2.0, 1)
    memory, hours = memory.counted(5, NOW + 3 * HOUR, "2026-12-01")
    assert (hours, memory.away) == (1.0, 0)
    assert (memory.day_node_hours, memory.removed) == (5.0, 2)


def test_each_local_day_has_its_own_count() -> None:
    memory, _ = (
        IdleMemory(counted_at=NOW, day="2026-12-01", day_nodes=4).without("i-a").counted(0, NOW + HOUR, "2026-12-02")
    )
    assert (memory.day, memory.day_nodes, memory.day_node_hours) == ("2026-12-02", 0, 1.0)


def test_what_is_left_to_put_back_outlives_the_quiet_stretch() -> None:
    memory = IdleMemory(quiet_since=NOW, marked=("i-a",), min_before=2, min_lowered_at=NOW, removed=3, kept="x")
    up = memory.while_up()
    assert up.owes
    assert (up.marked, up.min_before, up.removed, up.kept, up.quiet_since) == (("i-a",), 2, 0, "", 0.0)
    assert not IdleMemory().owes


def test_a_removal_is_under_way_for_longer_than_its_calls_can_last() -> None:
    memory = IdleMemory(leaving={"i-a": NOW})
    assert memory.is_leaving("i-a", NOW + 119)
    assert not memory.is_leaving("i-a", NOW + 120)
    assert not memory.is_leaving("i-b", NOW)


ROOM = Resources(1000, 10 * 2**30, pods=10)


def spare(count: int) -> list[FreeNode]:
    return [FreeNode(f"spare-{n}", ROOM) for n in range(count)]


def test_no_more_nodes_are_kept_than_the_demand_needs() -> None:
    demand = [Demand("bio", PodShape(Resources(100, 2**30, pods=1)), 25)]
    assert fewest_needed(demand, [], spare(5)) == 3
    assert fewest_needed(demand, [FreeNode("busy", ROOM)], spare(5)) == 2
    assert fewest_needed(demand, [], spare(2)) == 2
    assert fewest_needed([], [], spare(2)) == 0


def test_a_pod_that_fits_on_no_node_keeps_none() -> None:
    demand = [Demand("bio", PodShape(Resources(5000, pods=1)), 3)]
    assert fewest_needed(demand, [], spare(5)) == 0


def test_pods_that_wait_are_demand_whoever_announced_them() -> None:
    [demand] = waiting_demand([pod("a"), pod("b")])
    assert (demand.key, demand.pods) == (UNRESERVED, 2)
