"""MinSize: out of the way at night, and as the operator had it in the morning."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstbell.cloud.eks import NodeGroup
from firstbell.errors import RetryLater
from tests.fakes import Crash
from tests.fakes.school import MINUTE
from tests.functional.idle.evening import HOUR, NEXT_MORNING, SEVEN_PM, Evening, quiet_pool

EVENING = SEVEN_PM + HOUR
MORNING = NEXT_MORNING + 10 * MINUTE


def school_of(nodes: int, min_size: int) -> Evening:
    school = Evening()
    school.with_nodes(nodes)
    school.change_group(min_size=min_size)
    return school


def morning_after(school: Evening, moment: float = MORNING) -> None:
    school.until(moment)
    school.grow()


def test_case_59_sizes_come_back_and_the_operators_new_maximum_stays() -> None:
    school = school_of(5, min_size=2)
    school.until(EVENING)
    assert school.sizes() == (0, 0, 20)
    [zero] = school.said("Pool Scaled To Zero")
    assert zero["min_size"] == 2
    school.change_group(max_size=40)
    morning_after(school)
    assert school.sizes() == (2, 2, 40)
    assert len(school.nodes()) == 2


def test_case_59_a_second_night_does_not_take_zero_for_what_the_operator_had() -> None:
    school = school_of(3, min_size=2)
    morning_after(school)
    school.until(NEXT_MORNING + 13 * HOUR)
    assert school.sizes() == (0, 0, 20)
    morning_after(school, NEXT_MORNING + 25 * HOUR)
    assert school.sizes() == (2, 2, 20)


def test_a_minimum_that_hinders_nobody_is_not_lowered() -> None:
    school = school_of(2, min_size=2)
    for name in school.nodes():
        school.seat(name)
    school.until(EVENING)
    assert school.sizes() == (2, 2, 20)
    assert not school.written()


def test_a_minimum_that_the_operator_sets_in_the_night_is_theirs() -> None:
    school = school_of(3, min_size=2)
    school.until(EVENING)
    school.autoscaling.update_min_size("asg-notebook", 1)
    school.grow()
    school.until(EVENING + HOUR)
    assert school.sizes() == (1, 1, 20)
    assert [node["reason"] for node in school.said("Pool Kept")[-1]["nodes"]] == ["MinSize"]
    morning_after(school)
    assert school.sizes() == (1, 1, 20)
    school.until(NEXT_MORNING + 13 * HOUR)
    assert school.sizes() == (0, 0, 20)
    morning_after(school, NEXT_MORNING + 25 * HOUR)
    assert school.sizes() == (1, 1, 20)


def test_a_maximum_that_became_smaller_than_the_minimum_bounds_it() -> None:
    school = school_of(3, min_size=2)
    school.until(EVENING)
    school.change_group(max_size=1)
    morning_after(school)
    assert school.sizes() == (1, 1, 1)


CALLS = ["update_min_size", "ledger.finish", "ledger.lease", "cordon", "terminate_with_decrement", "publish"]


@pytest.mark.parametrize("after_effect", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_what_the_operator_had_survives_runs_that_die(call: str, after_effect: bool) -> None:
    school = school_of(3, min_size=2)
    for moment, sizes in ((SEVEN_PM + 2 * HOUR, (0, 0, 20)), (MORNING + HOUR, (2, 2, 20))):
        for nth in (1, 2, 3):
            school.faults.fail(call, Crash(), nth=nth, after_effect=after_effect)
        while school.now < moment:
            try:
                school.rounds(1)
            except Crash:
                school.sweep()
                school.minutes(5)
        assert school.sizes() == sizes


def test_a_pool_that_leaves_the_operators_file_gets_its_minimum_and_its_nodes_back() -> None:
    school = school_of(3, min_size=2)
    student = next(iter(school.nodes()))
    school.seat(student)
    school.until(SEVEN_PM + MINUTE)
    assert school.marked()
    without = replace(school.pools[0], idle=None)
    school.settings = replace(school.settings, pools=(without,))
    school.rounds(2)
    assert not school.marked()
    assert school.sizes()[0] == 2
    assert not school.memory().owes


def managed(min_size: int = 2, nodes: int = 3) -> Evening:
    school = Evening(pools=(replace(quiet_pool(), group="asg-notebook"),))
    school.with_nodes(nodes)
    school.change_group(min_size=min_size)
    school.settings = replace(school.settings, pools=(replace(school.pools[0], group=None, nodegroup="workers"),))
    school.eks.nodegroups["hub", "workers"] = NodeGroup("workers", "asg-notebook", min_size, 20, nodes)
    return school


def apply(school: Evening) -> None:
    """EKS brings the group to what its node group says."""
    nodegroup = school.eks.nodegroups["hub", "workers"]
    group = school.autoscaling.groups["asg-notebook"]
    school.change_group(min_size=nodegroup.min_size, desired=max(group.desired, nodegroup.min_size))


def test_a_managed_node_groups_minimum_goes_through_eks_which_takes_its_time() -> None:
    school = managed()
    school.until(SEVEN_PM + 15 * MINUTE)
    assert "update_min_size" not in school.written()
    assert school.eks.nodegroups["hub", "workers"].min_size == 0
    assert school.sizes() == (2, 2, 20)  # one went; the minimum still holds the others
    apply(school)
    school.until(EVENING)
    assert school.sizes() == (0, 0, 20)
    school.until(MORNING)
    apply(school)
    nodegroup = school.eks.nodegroups["hub", "workers"]
    assert (nodegroup.min_size, nodegroup.desired) == (2, 2)
    assert school.sizes() == (2, 2, 20)


def test_a_node_group_that_eks_is_changing_is_asked_again() -> None:
    school = managed()
    school.until(EVENING)
    apply(school)
    school.until(NEXT_MORNING)
    school.faults.fail("update_nodegroup_min_size", RetryLater("ResourceInUseException"))
    with pytest.raises(RetryLater):
        school.idle()
    school.rounds(1)
    assert school.eks.nodegroups["hub", "workers"].min_size == 2
