"""A metric leaves as one line, with exactly the dimensions of the table."""

from __future__ import annotations

import json

import pytest
from aws_lambda_powertools import Logger

from firstbell.telemetry import METRICS, Telemetry


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch) -> Telemetry:
    """As in a function, where the environment names a service."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "tick")
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Firstbell")
    return Telemetry("hub", Logger(level="CRITICAL"))


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_its_own_dimensions_and_no_others(
    telemetry: Telemetry, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """One dimension more, such as a service, and no alarm that asks for the others would ever see it."""
    dimensions = {dimension: f"some-{dimension}" for dimension in METRICS[name].dimensions}
    telemetry.emit(name, 3, **dimensions)
    (line,) = capsys.readouterr().out.splitlines()
    said = json.loads(line)
    (directive,) = said["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Firstbell"
    assert [sorted(names) for names in directive["Dimensions"]] == [sorted(["cluster", *dimensions])]
    assert directive["Metrics"] == [{"Name": name, "Unit": METRICS[name].unit.value}]
    assert {key: said[key] for key in ("cluster", *dimensions)} == {"cluster": "hub", **dimensions}
    assert said[name] in (3, [3])


def test_two_metrics_do_not_share_their_dimensions(telemetry: Telemetry, capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.emit("PodsShort", pool="a")
    telemetry.emit("TickRuns")
    _, second = capsys.readouterr().out.splitlines()
    assert json.loads(second)["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["cluster"]]


def test_a_name_or_a_dimension_that_the_table_does_not_know_is_refused(telemetry: Telemetry) -> None:
    with pytest.raises(KeyError):
        telemetry.emit("PodsShrot", pool="a")
    with pytest.raises(ValueError, match="dimensions"):
        telemetry.emit("PodsShort")
