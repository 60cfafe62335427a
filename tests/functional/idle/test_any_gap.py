"""Whatever happens in whatever gap between two of our calls, no node with a user pod is ended: not by us, and not by
what Auto Scaling does in answer to us.

Before any call of ours the scheduler binds pods that it decided on a while ago, students come and go, portals signal,
other runs of ours start, other writers change the group, AZRebalance evens zones out, and time passes, longer than a
lease lasts, too. Runs also die, before or after any call.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from firstbell.errors import Conflict, RetryLater
from tests.fakes import Crash, FakeAutoScaling
from tests.fakes.school import MINUTE, PLACES, School
from tests.functional.idle.evening import HOUR, NEXT_MORNING, SEVEN_PM, Evening, quiet_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from firstbell.capacity.cluster_view import Node
    from firstbell.capacity.groups import Member

GROUP = "asg-notebook"
SCHEDULING_SECONDS = 30.0
"""How long the scheduler may take from a decision to the binding; less than `settle_seconds`."""
STUDENTS = 3
FAULTS: tuple[BaseException, ...] = (Crash(), RetryLater("throttled"), Conflict("changed"))


@dataclass(frozen=True)
class Decision:
    """A pod that the scheduler has a node for, and has not bound yet."""

    uid: str
    node: str
    at: float


class AdversarialAutoScaling(FakeAutoScaling):
    """Ends what it is told to end, and whenever it has a choice, the busiest."""

    school: AdversarialSchool
    owed_to_others = 0
    """Members that other writers asked it to end."""

    def terminate_with_decrement(self, instance_id: str) -> None:
        before = self._members()
        try:
            super().terminate_with_decrement(instance_id)  # its gap, too, is open
        finally:
            for ended in before - self._members():
                self.school.assert_without_users(ended, "we ended it")
            self.school.sweep()

    def _members(self) -> set[str]:
        return {m.instance_id for m in self.groups[GROUP].members}

    def lowered_by_another(self, units: int) -> None:
        group = self.groups[GROUP]
        lowered = max(group.min_size, group.desired - units)
        before = max(0, group.living_units - group.desired)
        self.groups[GROUP] = replace(group, desired=lowered)
        self.owed_to_others += max(0, group.living_units - lowered) - before

    def act(self) -> None:
        """What Auto Scaling does by itself, when it comes to it."""
        while (group := self.groups[GROUP]).living_units > group.desired:
            if (victim := self._busiest(group.members)) is None:
                break
            if self.owed_to_others:
                self.owed_to_others -= 1
            else:
                self.school.assert_without_users(victim.instance_id, "Auto Scaling scaled in in answer to us")
            self._end(victim)
        self._rebalance()

    def _rebalance(self) -> None:
        """Launches where there are fewest and ends the busiest where there are most, until zones differ by one."""
        for _ in range(10):
            group = self.groups[GROUP]
            counts = Counter(dict.fromkeys(group.zones, 0))
            counts.update(m.zone for m in group.members)
            (fullest, most), (emptiest, fewest) = counts.most_common()[0], counts.most_common()[-1]
            victim = self._busiest(m for m in group.members if m.zone == fullest)
            if "AZRebalance" in group.suspended or most - fewest < 2 or victim is None:
                return
            self.school.assert_without_users(victim.instance_id, "AZRebalance ended it in answer to us")
            self._end(victim)
            self.school.join(self.launch_in(emptiest))

    def launch_in(self, zone: str) -> list[str]:
        group = self.groups[GROUP]
        self.groups[GROUP] = replace(group, desired=len(group.members) + 1)
        launched = self.launch(GROUP)
        members = (replace(m, zone=zone) if m.instance_id in launched else m for m in self.groups[GROUP].members)
        self.groups[GROUP] = replace(self.groups[GROUP], members=tuple(members), desired=group.desired)
        return launched

    def _busiest(self, members: Iterable[Member]) -> Member | None:
        open_to_it = [m for m in members if not m.protected_from_scale_in]
        return max(open_to_it, key=lambda m: len(self.school.users_on(m.instance_id)), default=None)

    def _end(self, victim: Member) -> None:
        self._keep(GROUP, [m for m in self.groups[GROUP].members if m != victim])
        self.school.sweep()


@dataclass
class AdversarialSchool(Evening):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.decisions: list[Decision] = []
        self.autoscaling = self.auto_scaling = AdversarialAutoScaling(
            self.autoscaling.groups.values(), clock=self.clock, faults=self.faults
        )
        self.auto_scaling.school = self

    def users_on(self, instance_id: str) -> list[str]:
        """Pods that are on the node, or that the scheduler is about to bind to it: those would be lost too."""
        name = f"node-{instance_id}"
        bound = [p.uid for p in self.cluster.pod_by_uid.values() if p.node_name == name]
        return bound + [d.uid for d in self.decisions if d.node == name and d.uid in self.cluster.pod_by_uid]

    def assert_without_users(self, instance_id: str, how: str) -> None:
        assert not self.users_on(instance_id), f"{instance_id} had a student's pod: {how}"

    def decide(self) -> None:
        """The scheduler picks nodes from what it knows now; `bind` makes it so."""
        promised = {decision.uid for decision in self.decisions}
        waiting = [p for p in self.cluster.pod_by_uid.values() if not p.bound and p.uid not in promised]
        for pod in waiting:
            fitting = [n for n in self.cluster.node_by_name.values() if self._fits(pod, n)]
            if fitting:
                self.decisions.append(Decision(pod.uid, self._emptiest(fitting).name, self.now))

    def _emptiest(self, nodes: list[Node]) -> Node:
        """The most dangerous choice: the node that we are most likely to take for idle."""
        return min(nodes, key=lambda n: (len(self.users_on(n.instance_id)), n.name))

    def bind(self) -> None:
        """Decisions land, however the node looks by now, unless it is gone."""
        for decision in self.decisions:
            if decision.uid in self.cluster.pod_by_uid and decision.node in self.cluster.node_by_name:
                self.cluster.bind(decision.uid, decision.node)
        self.decisions.clear()

    def wait(self, seconds: float) -> None:
        if self.decisions and self.now + seconds - self.decisions[0].at > SCHEDULING_SECONDS:
            self.bind()
        self.now += seconds

    def students_come(self) -> None:
        for _ in range(STUDENTS):
            self.student()

    def a_student_waits_while_the_lease_lapses(self) -> None:
        """Tick gives her what node it may."""
        self.wait(40)
        self.student()
        self.tick()
        self.decide()
        self.bind()

    def another_evaluation_while_the_lease_lapses(self) -> None:
        """It gives back what a new reservation needs, if it may."""
        self.wait(40)
        self.deliver(self.signal(PLACES))
        self.idle()
        self.student()
        self.decide()

    def a_student_comes_and_is_bound(self) -> None:
        self.student()
        self.decide()
        self.bind()

    def students_leave(self) -> None:
        for uid in list(self.cluster.pod_by_uid)[:STUDENTS]:
            self.cluster.finish(uid)

    def a_signal(self) -> None:
        self.deliver(self.signal(2 * PLACES, hold_minutes=20))


HAPPENINGS: dict[str, Callable[[AdversarialSchool], object]] = {
    "students come": AdversarialSchool.students_come,
    "students leave": AdversarialSchool.students_leave,
    "the scheduler decides": AdversarialSchool.decide,
    "the scheduler binds": AdversarialSchool.bind,
    "a student comes and is bound": AdversarialSchool.a_student_comes_and_is_bound,
    "a student waits while the lease lapses": AdversarialSchool.a_student_waits_while_the_lease_lapses,
    "another evaluation while the lease lapses": AdversarialSchool.another_evaluation_while_the_lease_lapses,
    "a signal": AdversarialSchool.a_signal,
    "a tick": School.tick,
    "another evaluation": School.idle,
    "nodes join": lambda school: school.grow(),
    "another writer raises": lambda school: school.change_group(desired=min(school.desired() + 1, school.max_size)),
    "another writer lowers": lambda school: school.auto_scaling.lowered_by_another(1),
    "Auto Scaling acts": lambda school: school.auto_scaling.act(),
    "the operator sets MinSize": lambda school: school.autoscaling.update_min_size(GROUP, 1),
    "a while passes": lambda school: school.wait(20),
    "a lease lapses": lambda school: school.wait(40),
}
ZONES = [("us-west-2a",), ("us-west-2a", "us-west-2b")]
MOST_GAPS = 45


class Door:
    """Opens the gaps of the next run of ours: before its nth call, what `happens` says for n."""

    def __init__(self, school: AdversarialSchool, happens: Mapping[int, Callable[[], None]]) -> None:
        self.school = school
        self.happens = happens
        self.passed = 0

    def __enter__(self) -> Door:
        self.school.faults.before = self._before
        return self

    def __exit__(self, *_: object) -> None:
        self.school.faults.before = _nothing

    def _before(self, call: str) -> None:
        happens = self.happens.get(self.passed)
        self.passed += 1
        if happens is not None:
            self.school.faults.before = _nothing  # what happens there meets no gap itself
            happens()
            self.school.faults.before = self._before


def _nothing(call: str) -> None:
    return


def run(invocation: Callable[[], object]) -> None:
    """Lambda runs that die or fail; the next one carries on."""
    with suppress(Crash, RetryLater, Conflict):
        invocation()


def a_school(zones: tuple[str, ...] = ZONES[0], nodes: int = 3, **changes: Any) -> AdversarialSchool:
    """At 19:00, every node idle for long enough."""
    school = AdversarialSchool(pools=(quiet_pool(),), max_size=8)
    school.change_group(zones=zones, **changes)
    school.with_nodes(nodes)
    school.auto_scaling.act()  # it starts balanced
    school.idle()
    school.now = SEVEN_PM
    return school


@pytest.mark.parametrize("zones", ZONES)
@pytest.mark.parametrize("happening", sorted(HAPPENINGS))
def test_in_no_gap_of_no_look_does_anything_cost_a_student_her_pod(happening: str, zones: tuple[str, ...]) -> None:
    """Case 51, in every gap: of the first look, or of the second, or of both; then the night goes on."""
    for first, second in [*((gap, None) for gap in range(30)), *((None, gap) for gap in range(30))]:
        school = a_school(zones, suspended=frozenset({"AZRebalance"} if happening == "another writer lowers" else ()))
        happens = partial(run, partial(HAPPENINGS[happening], school))
        for gap in (first, second):
            with Door(school, {} if gap is None else {gap: happens}):
                run(school.idle)
            school.auto_scaling.act()
            school.wait(5 * MINUTE)
        for _ in range(4):
            school.decide()
            run(school.idle)
            school.auto_scaling.act()
            school.wait(5 * MINUTE)


class AnyGap(RuleBasedStateMachine):
    @initialize(
        nodes=st.integers(1, 6),
        zones=st.sampled_from(ZONES),
        suspended=st.booleans(),
        protected=st.integers(0, 6),
        min_size=st.integers(0, 2),
    )
    def begins(self, nodes: int, zones: tuple[str, ...], suspended: bool, protected: int, min_size: int) -> None:
        self.rebalances = len(zones) > 1 and not suspended
        self.school = a_school(
            zones, nodes, suspended=frozenset({"AZRebalance"} if suspended else ()), min_size=min(min_size, nodes)
        )
        members = self.school.autoscaling.groups[GROUP].members
        ids = [m.instance_id for m in members[:protected]]
        self.school.autoscaling.set_protection(GROUP, ids, protected=True)

    @rule(
        gaps=st.dictionaries(st.integers(0, MOST_GAPS), st.sampled_from(sorted(HAPPENINGS)), min_size=1, max_size=9),
        fault=st.none() | st.tuples(st.integers(1, MOST_GAPS), st.sampled_from(FAULTS), st.booleans()),
    )
    def an_evaluation(self, gaps: dict[int, str], fault: tuple[int, BaseException, bool] | None) -> None:
        if fault:
            nth, error, after_effect = fault
            self.school.faults.fail("*", error, nth=nth, after_effect=after_effect)
        with Door(self.school, {gap: partial(self.happens, happening) for gap, happening in gaps.items()}):
            run(self.school.idle)
        self.school.faults.clear()

    @rule(happening=st.sampled_from(sorted(HAPPENINGS)))
    def meanwhile(self, happening: str) -> None:
        self.happens(happening)

    @rule(minutes=st.sampled_from((1, 5, 20)))
    def time_passes(self, minutes: float) -> None:
        self.school.wait(minutes * MINUTE)

    def happens(self, happening: str) -> None:
        if self.rebalances and happening == "another writer lowers":
            return  # what AZRebalance does then would be in answer to them
        run(lambda: HAPPENINGS[happening](self.school))

    def teardown(self) -> None:
        """Left alone, the pool comes to what holds it, and the morning finds nothing of ours on it."""
        if not hasattr(self, "school"):
            return
        school = self.school
        school.bind()
        for uid in list(school.cluster.pod_by_uid):
            school.cluster.finish(uid)
        school.auto_scaling.act()
        school.wait(90 * MINUTE)
        if school.now < NEXT_MORNING - 2 * HOUR:
            self.rest_of_the_night()
        school.now = max(school.now, NEXT_MORNING)
        for _ in range(3):
            school.rounds(1)
            school.grow()
        assert not school.marked()
        assert not school.memory().owes
        assert all(not node.unschedulable for node in school.cluster.node_by_name.values())

    def rest_of_the_night(self) -> None:
        school = self.school
        for _ in range(8):
            school.grow()
            school.auto_scaling.act()
            school.rounds(1)
        group = school.autoscaling.groups[GROUP]
        free_to_go = [m for m in group.members if not m.protected_from_scale_in]
        assert self.rebalances or not free_to_go or len(group.members) <= group.min_size


AnyGap.TestCase.settings = settings(max_examples=150, stateful_step_count=15, deadline=None)
TestAnyGap = AnyGap.TestCase
