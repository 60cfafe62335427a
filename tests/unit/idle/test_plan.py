"""What becomes of an idle node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from firstbell.capacity.idle_memory import IdleMemory
from firstbell.capacity.idle_policy import IdlePolicy
from firstbell.capacity.scheduling import Taint
from firstbell.idle.examine import examine
from firstbell.idle.plan import decide
from firstbell.idle.verdicts import Finding, Step
from tests.unit.idle.nodes import NOW, around, candidate, group, member, pod

if TYPE_CHECKING:
    from firstbell.capacity.groups import Group
    from firstbell.idle.verdicts import Candidate

POLICY = IdlePolicy(timezone="UTC", quiet=(), idle_minutes=15, settle_seconds=60)
LONG_IDLE = IdleMemory(idle_since={f"i-{name}": NOW - 3600 for name in "abc"})
MARKED = NOW - 300


def decided(
    *candidates: Candidate,
    of: Group | None = None,
    memory: IdleMemory = LONG_IDLE,
    needed: tuple[str, ...] = (),
    refreshing: bool = False,
) -> list[tuple[Finding, Step]]:
    verdicts = examine(candidates, around())
    found = decide(verdicts, POLICY, memory, of or group("a"), needed=needed, refreshing=refreshing, now=NOW)
    return [(v.finding, v.step) for v in found]


def test_case_51_a_node_is_cordoned_at_the_first_look_and_removed_at_the_second() -> None:
    assert decided(candidate("a")) == [(Finding.IDLE, Step.CORDON)]
    assert decided(candidate("a", marked_at=NOW - 59)) == [(Finding.IDLE, Step.WAIT)]
    assert decided(candidate("a", marked_at=NOW - 60)) == [(Finding.IDLE, Step.REMOVE)]


def test_case_51_a_node_that_a_pod_came_to_meanwhile_is_given_back() -> None:
    assert decided(candidate("a", pod(), marked_at=MARKED)) == [(Finding.BUSY, Step.UNCORDON)]


@pytest.mark.parametrize(("idle_seconds", "finding"), [(899, Finding.YOUNG), (900, Finding.IDLE)])
def test_a_node_has_to_be_idle_for_a_while(idle_seconds: float, finding: Finding) -> None:
    memory = IdleMemory(idle_since={"i-a": NOW - idle_seconds})
    assert decided(candidate("a"), memory=memory)[0][0] is finding


def test_a_node_that_was_never_seen_idle_before_is_idle_from_now_on() -> None:
    assert decided(candidate("a"), memory=IdleMemory()) == [(Finding.YOUNG, Step.KEEP)]


def test_what_pods_to_come_need_stays_and_is_given_back() -> None:
    assert decided(candidate("a", marked_at=MARKED), needed=("i-a",)) == [(Finding.NEEDED, Step.UNCORDON)]


def test_an_instance_refresh_is_not_disturbed() -> None:
    found = decided(candidate("a", marked_at=MARKED), refreshing=True)
    assert found == [(Finding.INSTANCE_REFRESH, Step.UNCORDON)]


def test_case_36_nobody_is_removed_while_auto_scaling_chooses_who_goes() -> None:
    assert decided(candidate("a"), of=group("a", "b", desired=1)) == [(Finding.SCALING_IN, Step.KEEP)]
    heavy = tuple(member(name, weight=2) for name in "ab")
    assert decided(candidate("a"), of=group(members=heavy, desired=3)) == [(Finding.IDLE, Step.CORDON)]


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"zones": ("us-west-2a", "us-west-2b")}, Finding.AZ_REBALANCE),
        ({"zones": ("us-west-2a", "us-west-2b"), "suspended": frozenset({"AZRebalance"})}, Finding.IDLE),
        ({"zones": ("us-west-2a",)}, Finding.IDLE),
    ],
)
def test_case_39_nobody_is_removed_where_az_rebalance_could_end_another_in_answer(
    changes: dict[str, Any], finding: Finding
) -> None:
    assert decided(candidate("a"), of=group("a", "b", **changes))[0][0] is finding


def test_with_az_rebalance_every_other_member_has_to_be_protected_from_it() -> None:
    zones = ("us-west-2a", "us-west-2b")
    protected = member("b", protected_from_scale_in=True)
    both = group("a", "b", zones=zones, members=(member("a"), protected))
    assert decided(candidate("a"), of=both) == [(Finding.IDLE, Step.CORDON)]
    third = replace(both, members=(*both.members, member("c", lifecycle="Pending")), desired=3)
    assert decided(candidate("a"), of=third)[0][0] is Finding.AZ_REBALANCE


def test_a_minimum_that_the_operator_set_in_the_night_is_kept() -> None:
    memory = replace(LONG_IDLE, min_is_theirs=True)
    assert decided(candidate("a"), memory=memory, of=group("a", "b", min_size=2))[0][0] is Finding.MIN_SIZE
    assert decided(candidate("a"), memory=memory, of=group("a", "b", min_size=1))[0][0] is Finding.IDLE


def test_a_node_that_somebody_else_removes_keeps_even_our_mark() -> None:
    leaving = candidate("a", marked_at=MARKED, taints=(Taint("ToBeDeletedByClusterAutoscaler"),))
    assert decided(leaving) == [(Finding.LEAVING, Step.KEEP)]
