"""Idle nodes on the deployed stack: real functions, a real API server and scheduler, groups that end instances."""

from __future__ import annotations

import pytest

from tests.e2e.cluster_api import await_value
from tests.e2e.deployed import Deployed
from tests.e2e.idling import Idling, touched_by_others


@pytest.fixture
def night(school: Deployed) -> Idling:
    return Idling(school, "night")


def test_idle_nodes_go_the_straggler_stays_and_is_named_and_the_last_one_takes_the_pool_to_zero(night: Idling) -> None:
    school = night.school
    night.raise_to(3)
    [ada] = school.students("night", 1)
    hers = night.await_running(ada)

    night.evaluate_twice()

    night.await_nodes({hers})
    assert school.group("night")["DesiredCapacity"] == 1
    kept = school.await_outcome("Pool Kept", pool="night")
    [node] = kept["nodes"]
    assert (node["node"], node["reason"]) == (hers, "busy")
    assert [pod["pod"] for pod in node["pods"]] == [f"hub/{ada}"]
    assert school.pod(ada)["status"]["phase"] == "Running"

    night.leave(ada)
    night.evaluate_twice()
    night.await_nodes(set())
    await_value("the group is empty", lambda: school.group("night")["Instances"], lambda members: not members)
    night.evaluate()
    zero = school.await_outcome("Pool Scaled To Zero", pool="night")
    assert zero["nodes_removed"] == 3
    assert school.group("night")["DesiredCapacity"] == 0
    assert not touched_by_others(school.cloud.audit_log, {ada})


def test_a_student_who_comes_between_the_looks_gets_a_node_back(night: Idling) -> None:
    school = night.school
    night.raise_to(2)
    night.evaluate()
    assert len(night.marked()) == 2
    [ben] = school.students("night", 1)
    his = night.await_running(ben)
    night.evaluate_twice()
    night.await_nodes({his})
    assert school.pod(ben)["status"]["phase"] == "Running"
    assert not touched_by_others(school.cloud.audit_log, {ben})
    night.leave(ben)
