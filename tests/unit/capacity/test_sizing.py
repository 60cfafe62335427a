"""How large a pool must be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstbell.capacity.density import NodeShape
from firstbell.capacity.groups import Group
from firstbell.capacity.placement import Demand, FreeNode, PodShape
from firstbell.capacity.pool_state import PoolState
from firstbell.capacity.reservations import Progress
from firstbell.capacity.resources import Resources
from tests.unit.capacity.sizes import (
    DOUBLE,
    LARGE,
    NOW,
    XLARGE,
    ZONES,
    demands,
    group,
    launchable,
    member,
    pod,
    reservation,
    size,
    usable_nodes,
)

USER = PodShape(pod(100, 2))
"""Three of them fit on an m5.large, six on an m5.xlarge."""
zone_lists = st.sampled_from((ZONES[:1], ZONES[:2], ZONES))


@settings(max_examples=400, deadline=None)
@given(demands(), launchable, usable_nodes(), zone_lists, st.integers(0, 5))
def test_a_plan_repeated_with_its_own_result_in_flight_asks_for_nothing_more(
    items: list[Demand], shapes: list[NodeShape], usable: tuple[FreeNode, ...], zones: tuple[str, ...], units: int
) -> None:
    asked: Group = group(*shapes, desired=units, zones=zones)
    first = size(asked, items, shapes, usable=usable)
    again = size(replace(asked, desired=first.desired), items, shapes, usable=usable)
    assert again.desired == first.desired
    placeable = {key for key, c in first.coverage.items() if not c.short}
    assert {key for key, c in again.coverage.items() if not c.short} >= placeable


@settings(max_examples=200, deadline=None)
@given(demands(), launchable, usable_nodes(), st.integers(0, 40), st.integers(0, 60))
def test_desired_is_never_below_what_was_read_nor_raised_above_max_size(
    items: list[Demand], shapes: list[NodeShape], usable: tuple[FreeNode, ...], read: int, max_size: int
) -> None:
    plan = size(group(*shapes, desired=read, max_size=max_size), items, shapes, usable=usable)
    assert plan.desired >= read
    assert plan.desired <= max(read, max_size)
    assert plan.capped == (plan.needed > plan.desired)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 200), st.integers(0, 50), st.sampled_from((LARGE, XLARGE, DOUBLE)), st.integers(0, 20))
def test_more_pods_of_one_size_never_need_fewer_nodes(pods: int, more: int, shape: NodeShape, unlaunched: int) -> None:
    asked = group(shape, desired=unlaunched)
    fewer, all_of_them = (size(asked, [Demand("bio101", USER, count)], [shape]) for count in (pods, pods + more))
    nodes_of_all, nodes_of_fewer = (-(-plan.desired // shape.weight) for plan in (all_of_them, fewer))
    assert nodes_of_all >= nodes_of_fewer


@settings(max_examples=200, deadline=None)
@given(demands(), launchable, usable_nodes(), zone_lists)
def test_every_pod_is_placed_on_its_way_or_named_short(
    items: list[Demand], shapes: list[NodeShape], usable: tuple[FreeNode, ...], zones: tuple[str, ...]
) -> None:
    plan = size(group(*shapes, zones=zones), items, shapes, usable=usable)
    for item in items:
        possible = item.key not in plan.impossible
        suits = not item.shape.zones or set(item.shape.zones) & set(zones)
        if possible and suits:
            assert plan.coverage[item.key].short == 0
        elif possible:
            coverage = plan.coverage[item.key]
            assert coverage.short == coverage.outstanding - coverage.placed


@pytest.mark.parametrize(
    ("shape", "pods", "units"), [(LARGE, 3, 1), (LARGE, 4, 2), (XLARGE, 6, 2), (XLARGE, 7, 3), (XLARGE, 13, 5)]
)
def test_case_40_units_are_the_groups_own(shape: NodeShape, pods: int, units: int) -> None:
    assert size(group(shape), [Demand("bio101", USER, pods)], [shape]).desired == units


def test_case_40_a_mixed_group_is_reckoned_by_the_type_that_gives_least() -> None:
    items = [Demand("bio101", USER, 12)]
    assert size(group(LARGE, XLARGE), items, [LARGE, XLARGE]).desired == 4
    poor = replace(XLARGE, allocatable=replace(XLARGE.allocatable, memory_bytes=5 * 2**30))
    assert size(group(LARGE, poor), items, [LARGE, poor]).desired == 12


def test_case_35_terminating_members_are_not_counted() -> None:
    members = (
        *(member(n, LARGE) for n in range(20)),
        *(member(n, LARGE, lifecycle="Terminating:Wait") for n in (20, 21, 22)),
    )
    busy = tuple(FreeNode(m.instance_id, Resources(), m.zone) for m in members[:20])
    joined = frozenset(m.instance_id for m in members[:20])
    plan = size(
        group(LARGE, desired=20, members=members), [Demand("bio101", USER, 6)], [LARGE], usable=busy, joined=joined
    )
    assert plan.desired == 22


def test_members_without_a_node_cover_until_they_are_late() -> None:
    coming = group(LARGE, desired=2, members=(member(1, LARGE), member(2, LARGE)))
    plan = size(coming, [Demand("bio101", USER, 6)], [LARGE])
    assert (plan.desired, plan.coverage["bio101"].placed, plan.coverage["bio101"].short) == (2, 0, 0)


def test_what_a_failing_pool_has_not_launched_covers_nothing_and_it_asks_for_nothing() -> None:
    plan = size(group(LARGE, desired=2), [Demand("bio101", USER, 9)], [LARGE], failing=True)
    assert (plan.desired, plan.coverage["bio101"].short) == (2, 9)


def test_what_somebody_else_had_set_is_owed_back() -> None:
    plan = size(group(LARGE, desired=22), [Demand("bio101", USER, 3)], [LARGE], at_least=25)
    assert plan.desired == 25


def test_pods_bound_to_a_zone_are_covered_by_units_that_are_not_launched_yet() -> None:
    bound = PodShape(USER.requests, zones=(ZONES[1],))
    asked = group(LARGE, zones=ZONES)
    first = size(asked, [Demand("bio101", bound, 2)], [LARGE])
    assert (first.desired, first.coverage["bio101"].short) == (3, 0)


def test_a_zone_that_the_group_does_not_launch_in_is_short_and_buys_nothing() -> None:
    bound = PodShape(USER.requests, zones=("us-west-2d",))
    plan = size(group(LARGE, zones=ZONES), [Demand("bio101", bound, 2)], [LARGE])
    assert (plan.desired, plan.coverage["bio101"].short) == (0, 2)


def test_a_pod_that_one_of_the_types_cannot_take_is_impossible_and_the_others_are_sized() -> None:
    items = [Demand("huge", PodShape(pod(100, 10)), 1), Demand("bio101", USER, 3)]
    plan = size(group(LARGE, XLARGE), items, [LARGE, XLARGE])
    assert "m5.large offers" in plan.impossible["huge"]
    assert plan.desired == 1


def test_without_sight_members_that_came_after_the_request_count_as_empty_and_older_ones_as_full() -> None:
    members = (member(1, LARGE), member(2, LARGE))
    old, new = members
    state = PoolState(first_seen={old.instance_id: NOW - 900, new.instance_id: NOW - 60})
    live = [reservation(pods=6, progress=Progress(asked_at=NOW - 120))]
    plan = size(
        group(LARGE, desired=2, members=members),
        [Demand("bio101", USER, 6)],
        [LARGE],
        live=live,
        known=False,
        state=state,
    )
    assert plan.desired == 3
