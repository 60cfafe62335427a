"""Signals for now and later, corrections, duplicates, cancellations, arrivals, departures, ticks, crashes between any
two calls, foreign writers of desired and MaxSize, pauses, clusters out of sight and launch failures, in any order:
nothing is lost, nothing is bought twice, nothing is written lower."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from firstbell.errors import AccessDenied, Conflict, RetryLater
from firstbell.outcomes import rfc3339
from tests.fakes import Crash, FakeAutoScaling
from tests.fakes.school import GIB, PLACES, School, pool

if TYPE_CHECKING:
    from collections.abc import Collection

    from firstbell.capacity.groups import Group

POOLS = ("notebook", "spare")
MAX_SIZE = 6
MOST_UNITS = 12
REFERENCES = ("bio101", "chem202", "phys303")
FAILURE = "We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested (us-west-2a)."
FAULTS: tuple[BaseException, ...] = (Crash(), RetryLater("throttled"), Conflict("changed"))

SIZES_GIB = (1, 2, 4)
FEWEST_PLACES = {1: 12, 2: 6, 4: 3}
"""Places on a node for pods of each size, one place of 2 GiB kept free as is done for mixed sizes."""

pods = st.integers(1, 3 * PLACES)
pool_names = st.sampled_from(POOLS)
sizes_gib = st.sampled_from((2, 2, 2, 1, 4))


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
        withdrawal = units == max(read.living_units, read.min_size)
        assert units >= read.desired or withdrawal, f"{units} is below the {read.desired} just read"
        assert units <= max(read.desired, self.most_needed(name)), f"{units} units were bought twice"
        super().set_desired(name, units)

    def most_needed(self, name: str) -> int:
        """An upper bound that knows nothing of how the product counts: every pod that is there or announced, in nodes,
        and one node more for each instance that has had its ten minutes and did not join."""
        school = self.school
        if {"nodes", "pods"} & set(school.faults.raised):
            return MOST_UNITS  # without sight of the cluster, existing nodes are taken to be full
        usable = {node.instance_id for node in school.cluster.node_by_name.values() if node.ready}
        late = [
            m
            for m in self.groups[name].members
            if m.instance_id not in usable and school.now - self.launched_at[m.instance_id] > 600
        ]
        sizes = Counter[int]()
        for reservation in school.ledger.reservations.values():
            sizes[reservation.pod.memory_bytes // GIB] += reservation.pods
        for pod in school.cluster.pod_by_uid.values():
            sizes[pod.requests.memory_bytes // GIB] += 1
        return sum(math.ceil(count / FEWEST_PLACES[size]) for size, count in sizes.items() if size) + len(late)


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

    @rule(
        pods=pods,
        reference=st.sampled_from(REFERENCES),
        name=pool_names,
        gib=sizes_gib,
        starts_in_minutes=st.sampled_from((None, None, 0, 4, 20)),
        revision=st.sampled_from((None, None, 1, 2, 3)),
    )
    def a_signal(
        self, pods: int, reference: str, name: str, gib: int, starts_in_minutes: int | None, revision: int | None
    ) -> None:
        detail: dict[str, Any] = {"pool": name, "hold_minutes": 240, "pod": {"memory": f"{gib}Gi"}}
        if starts_in_minutes is not None:
            detail["starts_at"] = rfc3339(self.school.now + 60 * starts_in_minutes)
        if revision is not None:
            detail["revision"] = revision
        self.send(self.school.signal(pods, reference, **detail))

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

    @rule(name=pool_names, reference=st.sampled_from((*REFERENCES, None)), count=st.integers(1, PLACES), gib=sizes_gib)
    def students_come(self, name: str, reference: str | None, count: int, gib: int) -> None:
        for _ in range(count):
            self.school.student(reference, name, gib)

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

    @rule(name=pool_names, max_size=st.integers(0, MAX_SIZE + 2))
    def an_operator_edits_max_size(self, name: str, max_size: int) -> None:
        """Auto Scaling lowers desired with it; that no instance has to go is the operator's care here."""
        group = self.school.autoscaling.groups[f"asg-{name}"]
        max_size = max(max_size, group.living_units)
        self.school.change_group(name, max_size=max_size, desired=min(group.desired, max_size))

    @rule()
    def an_operator_pauses_or_resumes(self) -> None:
        self.school.ledger.paused = not self.school.ledger.paused

    @rule(data=st.data())
    def a_node_breaks_or_recovers(self, data: st.DataObject) -> None:
        nodes = self.school.cluster.node_by_name
        if nodes:
            node = nodes[data.draw(st.sampled_from(sorted(nodes)))]
            self.school.cluster.add_node(
                replace(node, ready=not node.ready, ready_at=0.0 if node.ready else self.school.now)
            )

    @rule(times=st.integers(1, 4), call=st.sampled_from(("nodes", "pods")), denied=st.booleans())
    def the_cluster_is_out_of_sight(self, times: int, call: str, denied: bool) -> None:
        error = AccessDenied("403") if denied else RetryLater("no answer")
        self.school.faults.fail(call, error, times=times)

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
        school.ledger.paused = False
        for event in self.events:  # Lambda delivers again what failed
            self.run(school.deliver, event)
        self.settle()
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


class VeryManyInterleavings(AnyInterleaving):
    """The same, for the long tier."""


AnyInterleaving.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
VeryManyInterleavings.TestCase.settings = settings(max_examples=1500, stateful_step_count=50, deadline=None)
TestAnyInterleaving = AnyInterleaving.TestCase
TestVeryManyInterleavings = pytest.mark.long(VeryManyInterleavings.TestCase)
