"""Signals, corrections, duplicates, cancellations, arrivals, departures, ticks, crashes between any two calls, foreign
writers and launch failures, in any order: nothing is lost, nothing is bought twice, nothing is written lower."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from firstbell.errors import Conflict, RetryLater
from tests.fakes import Crash, FakeAutoScaling
from tests.fakes.school import PLACES, School, pool

if TYPE_CHECKING:
    from collections.abc import Collection

    from firstbell.capacity.groups import Group

POOLS = ("notebook", "spare")
MAX_SIZE = 6
REFERENCES = ("bio101", "chem202", "phys303")
FAILURE = "We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested (us-west-2a)."
FAULTS: tuple[BaseException, ...] = (Crash(), RetryLater("throttled"), Conflict("changed"))

pods = st.integers(1, 3 * PLACES)
pool_names = st.sampled_from(POOLS)


class WatchedAutoScaling(FakeAutoScaling):
    """Refuses, with the test, a write of desired that must never happen."""

    school: School
    launched_at: dict[str, float]
    last_read: dict[str, Group]

    def describe(self, names: Collection[str]) -> dict[str, Group]:
        read = super().describe(names)
        self.last_read |= read
        return read

    def set_desired(self, name: str, units: int) -> None:
        read = self.last_read[name]
        assert units <= MAX_SIZE
        withdrawal = units == max(read.living_units, read.min_size)
        assert units >= read.desired or withdrawal, f"{units} is below the {read.desired} just read"
        assert units <= max(read.desired, self.most_needed(name)), f"{units} units were bought twice"
        super().set_desired(name, units)

    def most_needed(self, name: str) -> int:
        """An upper bound that knows nothing of how the product counts: every pod that is there or announced, in nodes,
        and one node more for each instance that has had its ten minutes and did not join."""
        school = self.school
        if {"nodes", "pods"} & set(school.faults.raised):
            return MAX_SIZE  # without sight of the cluster, existing nodes are taken to be full
        joined = {node.instance_id for node in school.cluster.node_by_name.values()}
        late = [
            m
            for m in self.groups[name].members
            if m.instance_id not in joined and school.now - self.launched_at[m.instance_id] > 600
        ]
        announced = sum(r.pods for r in school.ledger.reservations.values())
        return math.ceil((announced + len(school.cluster.pod_by_uid)) / PLACES) + len(late)


class AnyInterleaving(RuleBasedStateMachine):
    """Writes of desired are watched as they happen; what must hold in the end is checked in `teardown`."""

    @initialize()
    def a_school(self) -> None:
        self.school = School(pools=(pool(fallback=("spare",)), pool("spare")), max_size=MAX_SIZE)
        self.events: list[dict[str, Any]] = []
        watched = WatchedAutoScaling(
            self.school.autoscaling.groups.values(), clock=self.school.clock, faults=self.school.faults
        )
        watched.school, watched.launched_at, watched.last_read = self.school, {}, {}
        self.school.autoscaling = self.autoscaling = watched

    # what portals do

    @rule(pods=pods, reference=st.sampled_from(REFERENCES), name=pool_names)
    def a_signal(self, pods: int, reference: str, name: str) -> None:
        self.send(self.school.signal(pods, reference, pool=name, hold_minutes=240))

    @rule(reference=st.sampled_from(REFERENCES))
    def a_cancellation(self, reference: str) -> None:
        self.send(self.school.event({"reference": reference}, detail_type="Demand Cancelled"))

    @precondition(lambda self: self.events)
    @rule(data=st.data())
    def a_late_duplicate(self, data: st.DataObject) -> None:
        self.run(self.school.deliver, data.draw(st.sampled_from(self.events)))

    def send(self, event: dict[str, Any]) -> None:
        """EventBridge delivers it at least once: what fails is delivered again later."""
        self.events.append(event)
        self.school.now += 1
        self.run(self.school.deliver, event)

    # what students do

    @rule(name=pool_names, reference=st.sampled_from((*REFERENCES, None)), count=st.integers(1, PLACES))
    def students_come(self, name: str, reference: str | None, count: int) -> None:
        for _ in range(count):
            self.school.student(reference, name)

    @rule()
    def pods_are_scheduled(self) -> None:
        self.school.schedule()

    @rule(count=st.integers(1, 5))
    def students_leave(self, count: int) -> None:
        for uid in list(self.school.cluster.pod_by_uid)[:count]:
            self.school.cluster.finish(uid)

    # what AWS and others do

    @rule(name=pool_names, count=st.integers(1, 3), join=st.booleans())
    def instances_launch(self, name: str, count: int, join: bool) -> None:
        launched = self.launch(name, count)
        if join:
            self.school.join(launched, name)

    @rule(name=pool_names)
    def late_nodes_join(self, name: str) -> None:
        known = {node.instance_id for node in self.school.cluster.node_by_name.values()}
        members = self.school.autoscaling.groups[f"asg-{name}"].members
        self.school.join([m.instance_id for m in members if m.instance_id not in known], name)

    @precondition(lambda self: any(g.unlaunched_units for g in self.school.autoscaling.groups.values()))
    @rule(data=st.data())
    def a_launch_fails(self, data: st.DataObject) -> None:
        failing = [n for n in POOLS if self.school.autoscaling.groups[f"asg-{n}"].unlaunched_units]
        self.school.fail_launches(FAILURE, data.draw(st.sampled_from(failing)))

    @rule(name=pool_names, desired=st.integers(0, MAX_SIZE))
    def another_writer(self, name: str, desired: int) -> None:
        """Raises, or takes back what was not launched: instances that live are left alone here."""
        living = self.school.autoscaling.groups[f"asg-{name}"].living_units
        self.school.change_group(name, desired=max(desired, living))

    @rule(name=pool_names, desired=st.integers(1, MAX_SIZE))
    def another_writer_between_two_of_our_calls(self, name: str, desired: int) -> None:
        """Raises desired just as we look."""
        group = self.school.autoscaling.groups[f"asg-{name}"]
        self.school.change_group(name, desired=max(group.desired, desired))
        self.run(self.school.tick)

    @rule(call=st.integers(1, 14), fault=st.sampled_from(FAULTS), after=st.booleans())
    def the_nth_call_fails(self, call: int, fault: BaseException, after: bool) -> None:
        self.school.faults.fail("*", fault, nth=call, after_effect=after)

    @rule(minutes=st.sampled_from((0.5, 1, 2, 6)))
    def time_passes(self, minutes: float) -> None:
        self.school.minutes(minutes)

    @rule()
    def a_tick(self) -> None:
        self.run(self.school.tick)

    def run(self, invocation: Any, *args: Any) -> None:
        with suppress(Crash, RetryLater, Conflict):
            invocation(*args)

    def launch(self, name: str, count: int | None = None) -> list[str]:
        launched = self.autoscaling.launch(f"asg-{name}", count)
        self.autoscaling.launched_at |= dict.fromkeys(launched, self.school.now)
        return launched

    # what must hold in the end

    def teardown(self) -> None:
        if not hasattr(self, "school"):
            return
        school = self.school
        school.faults.clear()
        for event in self.events:  # Lambda delivers again what failed
            self.run(school.deliver, event)
        self.settle()
        requested = {event["reference"] for event in school.said("Capacity Requested")}
        answered = {e["reference"] for kind in ("Capacity Ready", "Capacity Short") for e in school.said(kind)}
        for reservation in school.ledger.reservations.values():
            if reservation.open_at(school.now):
                assert reservation.reference in requested
                assert reservation.reference in answered, "neither Ready nor Short"
                assert reservation.progress.ready_at or reservation.progress.short
        bought = {name: school.desired(name) for name in POOLS}
        self.settle()
        assert bought == {name: school.desired(name) for name in POOLS}, "bought more though nothing changed"

    def settle(self) -> None:
        """Launches succeed, nodes join, pods find their nodes, and more time passes than the longest back-off."""
        self.school.minutes(31)
        for _ in range(6):
            self.school.minutes(1)
            for name in POOLS:
                self.late_nodes_join(name)
                self.school.join(self.launch(name), name)
            self.school.schedule()
            self.school.tick()


AnyInterleaving.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestAnyInterleaving = AnyInterleaving.TestCase
