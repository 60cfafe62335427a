"""Metrics as they leave a function: one line of embedded metric format each, with exactly the table's dimensions."""

from __future__ import annotations

import json

import pytest
from aws_lambda_powertools import Logger

from firstbell.telemetry import METRICS, NAMESPACE, Telemetry


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_leaves_with_its_clusters_name_its_own_dimensions_and_no_others(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POWERTOOLS_SERVICE_NAME", raising=False)  # as the stack leaves it, see tests/infra
    metric = METRICS[name]
    Telemetry("hub", Logger(service="tick")).emit(name, 3, **dict.fromkeys(metric.dimensions, "x"))
    (directive,) = json.loads(capsys.readouterr().out)["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == NAMESPACE
    assert [set(dimensions) for dimensions in directive["Dimensions"]] == [{"cluster", *metric.dimensions}]
    assert directive["Metrics"] == [{"Name": name, "Unit": metric.unit.value}]


def test_what_the_table_does_not_have_is_refused() -> None:
    telemetry = Telemetry("hub", Logger(service="tick"))
    with pytest.raises(KeyError):
        telemetry.emit("Nonsense")
    with pytest.raises(ValueError, match="has the dimensions"):
        telemetry.emit("TickRuns", pool="notebook")
