"""A student's pod is bound in every gap between two calls of ours, by the real scheduler on the real API server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.e2e.cluster_api import await_value
from tests.e2e.deployed import Deployed
from tests.e2e.gate import Call, Fate, Gate
from tests.e2e.idling import FUNCTION, SETTLE_SECONDS, Idling, touched_by_others

pytestmark = pytest.mark.disruptive

GAPS = 20
"""Calls of an evaluation that cordons, or ends, two nodes; a gap beyond the last call stays shut."""
SCHEDULED_WITHIN_SECONDS = 1.0


@pytest.fixture
def gate(school: Deployed) -> Iterator[Gate]:
    with Gate(school.cloud, FUNCTION) as gate:
        yield gate


class Door:
    """Before the nth call of the next evaluation, a student comes; the scheduler gets the time to find her a node."""

    def __init__(self, night: Idling, nth: int) -> None:
        self.night = night
        self.left = nth
        self.students: list[str] = []

    def __call__(self, call: Call) -> Fate | None:
        if self.left == 0:
            self.students = self.night.school.students("night", 1)
            with suppress(AssertionError):  # every node is cordoned: she waits
                await_value("she has a node", self._node, bool, timeout_seconds=SCHEDULED_WITHIN_SECONDS)
        self.left -= 1
        return None

    def _node(self) -> str:
        return self.night.node_of(self.students[0])


@pytest.mark.parametrize("look", ["first", "second"])
def test_in_no_gap_does_a_student_lose_her_pod(school: Deployed, gate: Gate, look: str) -> None:
    night = Idling(school, "night")
    came: set[str] = set()
    bound_in_the_gap = 0
    for nth in range(GAPS):
        night.raise_to(2)
        door = Door(night, nth)
        gate.decide = door if look == "first" else _shut
        night.evaluate()
        gate.decide = _shut
        _settle()
        gate.decide = door if look == "second" else _shut
        night.evaluate()
        gate.decide = _shut
        for student in door.students:
            came.add(student)
            bound_in_the_gap += bool(night.node_of(student))
            node = night.await_running(student)
            night.evaluate_twice()
            assert school.pod(student)["status"]["phase"] == "Running"
            assert node in night.nodes()
        night.leave(*door.students)
    assert bound_in_the_gap > 0
    assert not touched_by_others(school.cloud.audit_log, came)


def _shut(call: Call) -> Fate | None:
    return None


def _settle() -> None:
    time.sleep(SETTLE_SECONDS + 1)  # nothing but time has to pass
