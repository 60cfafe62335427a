"""Nodes that idle has cordoned come back before new ones are bought."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstbell.capacity.pool_state import PoolState
from firstbell.cluster.cordons import CordonMark, mark_of
from firstbell.errors import AccessDenied, Conflict, RetryLater
from tests.fakes.school import PLACES, School, pool


def with_marked(school: School, nodes: int) -> list[str]:
    """The school with so many nodes, each with idle's cordon, as idle remembers them; their names."""
    school.change_group(desired=nodes)
    launched = school.grow()
    names = [f"node-{instance_id}" for instance_id in launched]
    for name in names:
        school.cluster.cordon(school.cluster.node_by_name[name], CordonMark("idle", "quiet", school.now))
    remember(school, marked=tuple(launched))
    return names


def remember(school: School, **changes: object) -> None:
    lease = school.ledger.lease("notebook", "test", school.now, changed=False)
    assert lease is not None
    state = school.ledger.read().state("notebook")
    assert school.ledger.finish(lease, replace(state, idle=replace(state.idle, **changes)), ())  # type: ignore[arg-type]


def marked(school: School) -> set[str]:
    return {n.name for n in school.cluster.node_by_name.values() if mark_of(n, "idle")}


def state(school: School) -> PoolState:
    return school.ledger.read().state("notebook")


def test_a_signal_takes_back_as_many_as_it_needs_and_buys_nothing() -> None:
    school = School()
    names = with_marked(school, 4)
    school.deliver(school.signal(2 * PLACES))
    assert len(marked(school)) == 2
    assert school.desired() == 4
    assert set(state(school).idle.marked) == {n.removeprefix("node-") for n in names if n in marked(school)}
    school.tick()
    assert [event["reference"] for event in school.said("Capacity Ready")] == ["bio101"]


def test_what_they_cannot_hold_is_bought() -> None:
    school = School()
    with_marked(school, 1)
    school.deliver(school.signal(3 * PLACES))
    assert not marked(school)
    assert school.desired() == 3


def test_a_student_who_comes_unannounced_gets_one_back_within_the_minute() -> None:
    school = School()
    with_marked(school, 3)
    school.student()
    assert school.schedule() == 1
    school.tick()
    assert len(marked(school)) == 2
    assert school.schedule() == 0
    assert school.desired() == 3


def test_marked_nodes_are_left_to_idle_while_nobody_asks() -> None:
    school = School()
    with_marked(school, 2)
    school.tick()
    assert len(marked(school)) == 2


def test_a_node_that_idle_has_set_out_to_remove_is_not_promised_to_anybody() -> None:
    school = School()
    [name] = with_marked(school, 1)
    remember(school, leaving={name.removeprefix("node-"): school.now})
    school.deliver(school.signal(PLACES))
    assert marked(school) == {name}
    assert school.desired() == 2
    school.minutes(2)
    school.tick()
    assert not marked(school)


@pytest.mark.parametrize("refusal", [AccessDenied("403"), RetryLater("timeout"), Conflict("changed")])
def test_a_node_that_cannot_be_given_back_costs_a_new_one_not_the_signal(refusal: Exception) -> None:
    school = School()
    with_marked(school, 1)
    school.faults.fail("uncordon", refusal, times=3)
    school.deliver(school.signal(PLACES))
    assert school.desired() == 2


def test_a_node_that_changed_meanwhile_is_read_again() -> None:
    school = School()
    with_marked(school, 1)
    school.faults.fail("uncordon", Conflict("changed"))
    school.deliver(school.signal(PLACES))
    assert not marked(school)
    assert school.desired() == 1


@pytest.mark.parametrize("brake", ["observe", "pause"])
def test_the_brakes_are_honoured(brake: str) -> None:
    school = School(pools=(pool(mode="observe" if brake == "observe" else "act"),))
    [name] = with_marked(school, 1)
    if brake == "pause":
        school.ledger.pause("ops", school.now)
    school.deliver(school.signal(PLACES))
    assert marked(school) == {name}


def test_a_cordon_of_somebody_elses_stays() -> None:
    school = School()
    [name] = with_marked(school, 1)
    node = school.cluster.uncordon(school.cluster.node_by_name[name], "idle")
    theirs = school.cluster.add_node(replace(node, unschedulable=True))
    school.cluster.cordon(theirs, CordonMark("idle", "quiet", school.now))
    school.deliver(school.signal(PLACES))
    assert school.cluster.node_by_name[name].unschedulable
    assert school.desired() == 2
