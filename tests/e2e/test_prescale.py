"""Signals on the deployed stack: real rules, real functions, a real API server and scheduler."""

from __future__ import annotations

import json

import pytest

from tests.e2e.cluster_api import await_value
from tests.e2e.deployed import SOURCE, Deployed

DENSITY = 14
"""Pods of 500m and 2 GiB on a recorded m5.2xlarge beside its DaemonSets."""


def test_one_signal_raises_a_pool_and_a_class_finds_its_places(school: Deployed) -> None:
    school.put({"region": "us-west-2", "pods": 2 * DENSITY + 1, "reference": "bio101", "pool": "notebook-1"})
    school.await_desired("notebook-1", 3)
    ready = school.await_outcome("Capacity Ready", reference="bio101")
    assert ready["nodes"] == 3
    assert set(ready["stages"]) >= {"desired_raised", "node_joined", "node_ready"}

    names = school.students("notebook-1", 2 * DENSITY + 1, "bio101")

    def running() -> int:
        return sum(school.pod(name)["status"]["phase"] == "Running" for name in names)

    await_value("the class works", running, lambda count: count == len(names))
    assert school.group("notebook-1")["DesiredCapacity"] == 3


def test_the_same_signal_again_buys_nothing(school: Deployed) -> None:
    signal = {"region": "us-west-2", "pods": DENSITY, "reference": "chem202", "pool": "notebook-2", "revision": 1}
    for _ in range(3):
        school.put(signal)
    school.await_desired("notebook-2", 1)
    school.await_outcome("Capacity Ready", reference="chem202")
    school.put(signal | {"revision": 2, "pods": 2 * DENSITY})
    school.await_desired("notebook-2", 2)
    await_value(
        "each revision was asked for once",
        lambda: [event["pods"] for event in school.outcomes("Capacity Requested", reference="chem202")],
        lambda pods: pods == [DENSITY, 2 * DENSITY],
    )


def test_what_is_wrong_is_answered_by_name_and_its_neighbours_do_not_suffer(school: Deployed) -> None:
    good = {"region": "us-west-2", "pods": 1, "reference": "phys303", "pool": "notebook-3"}
    bad = {"region": "us-west-2", "pods": "30", "reference": "bad-pods"}
    school.put(bad, good, {"pods": 3, "reference": "no-region"})
    school.put({"region": "mars-1", "pods": 3, "reference": "mars"})
    school.await_outcome("Capacity Requested", reference="phys303")
    for reference, field in (("bad-pods", "pods"), ("no-region", "region"), ("mars", "region")):
        rejected = school.await_outcome("Signal Rejected", reference=reference)
        assert [problem["field"] for problem in rejected["problems"]] == [field]


def test_nobody_can_put_outcomes_or_signals_of_a_source_that_is_not_listed(school: Deployed) -> None:
    for source in ("firstbell", "edu.example.somebody-else", "aws.autoscaling"):
        (answer,) = school.put({"region": "us-west-2", "pods": 1, "reference": "forged"}, source=source)
        assert answer.get("ErrorCode"), source
    (answer,) = school.put("{not json", source=SOURCE)
    assert answer["ErrorCode"] == "MalformedDetail"
    assert not [event for event in school.heard if event.detail.get("reference") == "forged"]


@pytest.mark.long
def test_fifty_signals_at_once_over_five_pools_end_at_the_right_sizes(school: Deployed) -> None:
    """Each pool gets ten classes, each class is sent twice; what earlier tests reserved stays."""
    before = {n: school.group(f"notebook-{n}")["DesiredCapacity"] for n in (4, 5)}
    assert set(before.values()) == {0}
    signals = [
        {"region": "us-west-2", "pods": 1 + k, "reference": f"storm-{n}-{k}", "pool": f"notebook-{n}"}
        for k in range(10)
        for n in (1, 2, 3, 4, 5)
    ]
    for start in range(0, 50, 10):
        school.put(*signals[start : start + 10])
        school.put(*signals[start : start + 10])
    pods = sum(1 + k for k in range(10))
    for n in (4, 5):
        school.await_desired(f"notebook-{n}", -(-pods // DENSITY), timeout_seconds=120)
    for signal in signals:
        school.await_outcome("Capacity Requested", reference=signal["reference"], timeout_seconds=180)
    wrote = [json.loads(line) for line in (school.cloud.state_dir / "fleet-calls.jsonl").read_text().splitlines()]
    raised = [call for call in wrote if call["action"] == "SetDesiredCapacity"]
    assert raised
    for n in (4, 5):
        assert school.group(f"notebook-{n}")["DesiredCapacity"] == -(-pods // DENSITY)
