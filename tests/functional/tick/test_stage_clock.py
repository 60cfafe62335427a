"""From the signal to the first student's server: each stage, in Capacity Ready and as a metric."""

from __future__ import annotations

import json

import pytest
from aws_lambda_powertools import Logger

from firstbell.capacity.groups import Activity
from firstbell.cluster.image_pulls import ImagePull
from firstbell.errors import RetryLater
from firstbell.outcomes import STAGES
from firstbell.telemetry import Telemetry
from tests.fakes.school import PLACES, School


def a_class_comes(school: School) -> None:
    """Signalled at 0 s; running after 25, joined after 40, a tick at 60, its first student's server Ready at 75."""
    began = school.now
    school.deliver(school.signal(PLACES))
    launched = school.launch()
    school.now = began + 40
    school.join(launched)
    description = f"Launching a new EC2 instance: {launched[0]}"
    school.autoscaling.activity_list["asg-notebook"] = [
        Activity("a1", "Successful", description, "", "", began + 1, began + 25)
    ]
    school.now = began + 60
    school.tick()
    first = school.student("bio101")
    school.now = began + 75
    school.schedule()
    school.cluster.pulls[first.uid] = ImagePull(pulled_at=began + 71, seconds=9)
    school.now = began + 120
    school.tick()


def stages(school: School) -> dict[str, float]:
    return {
        dimensions["stage"]: seconds
        for name, seconds, dimensions in school.telemetry.values
        if name == "StageSeconds" and dimensions["pool"] == "notebook"
    }


def test_every_stage_is_measured_once() -> None:
    school = School()
    a_class_comes(school)
    measured = stages(school)
    assert measured == {
        "signal_received": 0,
        "desired_raised": 0,
        "instance_running": 25,
        "node_joined": 40,
        "node_ready": 40,
        "image_pulled": 71,
        "first_pod_ready": 75,
    }
    assert set(measured) == set(STAGES)
    (ready,) = school.said("Capacity Ready")
    assert ready["stages"] == {stage: measured[stage] for stage in STAGES[:5]}
    assert ready["seconds_since_cause"] == 60
    count = len(school.telemetry.values)
    school.minutes(1)
    school.tick()
    assert "StageSeconds" not in {name for name, _, _ in school.telemetry.values[count:]}


def test_the_measured_time_to_ready_makes_the_next_lead() -> None:
    school = School()
    a_class_comes(school)
    assert school.ledger.read().state("notebook").ready_seconds == (60,)
    assert school.telemetry.total("SecondsToReady") == 60


def test_a_pod_without_events_still_ends_the_clock() -> None:
    school = School()
    school.faults.fail("image_pulls", RetryLater("no answer"))
    a_class_comes(school)
    measured = stages(school)
    assert "image_pulled" not in measured
    assert measured["first_pod_ready"] == 75


def test_where_the_headroom_suffices_only_the_signal_and_the_pod_are_stages() -> None:
    school = School()
    school.change_group(desired=1)
    school.grow()
    school.minutes(5)
    school.deliver(school.signal(PLACES))
    (ready,) = school.said("Capacity Ready")
    assert ready["stages"] == {"signal_received": 0}
    assert school.ledger.read().state("notebook").ready_seconds == ()


def test_stages_leave_as_embedded_metrics_without_a_reference(capsys: pytest.CaptureFixture[str]) -> None:
    """https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html"""
    Telemetry("hub", Logger(service="test", level="CRITICAL")).emit(
        "StageSeconds", 41.5, pool="notebook", stage="node_ready"
    )
    line = json.loads(capsys.readouterr().out)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Firstbell"
    assert [set(names) for names in directive["Dimensions"]] == [{"cluster", "pool", "stage"}]
    assert (line["StageSeconds"], line["stage"]) == ([41.5], "node_ready")
