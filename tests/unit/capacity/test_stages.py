"""The stage clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firstbell.capacity.cluster_view import Node, Pod
from firstbell.capacity.groups import Activity
from firstbell.capacity.reservations import Progress
from firstbell.capacity.resources import Resources
from firstbell.capacity.stages import caused_at, first_pod, node_stages, running_at
from tests.unit.capacity.sizes import NOW, reservation

LEAD = 300.0
SIGNALLED = reservation(signalled_at=NOW, received_at=NOW + 1.5, progress=Progress(raised_at=NOW + 3))


def node(instance_id: str, created_at: float, ready_at: float) -> Node:
    return Node(
        name=f"node-{instance_id}",
        instance_id=instance_id,
        instance_type="m5.large",
        zone="us-west-2a",
        ready=True,
        unschedulable=False,
        allocatable=Resources(pods=29),
        created_at=created_at,
        ready_at=ready_at,
    )


def pod(uid: str, created_at: float, ready_at: float, **changes: Any) -> Pod:
    made = Pod(uid=uid, name=uid, namespace="hub", requests=Resources(pods=1), node_name="node-i-1")
    return replace(made, created_at=created_at, ready_at=ready_at, **changes)


def test_the_clock_begins_at_the_signal_or_its_lead_before_a_later_start() -> None:
    assert caused_at(SIGNALLED, LEAD) == NOW
    assert caused_at(replace(SIGNALLED, starts_at=NOW + 900), LEAD) == NOW + 600


def test_the_last_node_raised_for_it_counts_for_each_stage() -> None:
    nodes = [node("i-old", NOW - 900, NOW - 850), node("i-1", NOW + 40, NOW + 58), node("i-2", NOW + 45, NOW + 52)]
    stages = node_stages(SIGNALLED, LEAD, nodes, {"i-1": NOW + 20, "i-2": NOW + 21.25})
    assert stages == {
        "signal_received": 1.5,
        "desired_raised": 3,
        "instance_running": 21.25,
        "node_joined": 45,
        "node_ready": 58,
    }


def test_where_the_headroom_sufficed_there_is_nothing_after_the_signal() -> None:
    nodes = [node("i-1", NOW + 40, NOW + 58)]
    assert node_stages(replace(SIGNALLED, progress=Progress()), LEAD, nodes, {}) == {"signal_received": 1.5}


def test_what_an_early_signal_has_passed_before_its_nodes_are_asked_for_took_no_time() -> None:
    early = replace(SIGNALLED, starts_at=NOW + 3600, progress=Progress(raised_at=NOW + 3330))
    assert node_stages(early, LEAD, [], {}) == {"signal_received": 0, "desired_raised": 30}


def test_an_instance_runs_when_its_launch_is_complete() -> None:
    def launch(status: str, description: str, ended_at: float) -> Activity:
        return Activity("a", status, description, "", "", NOW, ended_at)

    activities = [
        launch("Successful", "Launching a new EC2 instance: i-0aa", NOW + 20),
        launch("InProgress", "Launching a new EC2 instance: i-0bb", 0),
        launch("Failed", "Launching a new EC2 instance: i-0cc", NOW + 5),
        launch("Successful", "Terminating EC2 instance: i-0dd", NOW + 5),
    ]
    assert running_at(activities) == {"i-0aa": NOW + 20}


def test_the_first_pod_is_one_with_its_reference_or_a_young_one_without() -> None:
    reference = {"firstbell.dev/reference": "bio101"}
    pods = [
        pod("another's", NOW, NOW + 10, labels={"firstbell.dev/reference": "chem202"}),
        pod("old", NOW - 400, NOW + 11),
        pod("pending", NOW, 0, labels=reference),
        pod("second", NOW, NOW + 70, labels=reference),
        pod("first", NOW + 2, NOW + 61),
    ]
    found = first_pod(SIGNALLED, LEAD, pods)
    assert found is not None
    assert found.uid == "first"
    assert first_pod(SIGNALLED, LEAD, pods[:3]) is None
