"""Every metric that a template's alarms and dashboard name, with the dimensions that they name it by."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.infra.stacks import Synthesized

_SELECT = re.compile(r"SELECT \w+\((\w+)\) FROM SCHEMA\(([^)]*)\)")
_SEARCH = re.compile(r"SEARCH\('\{([^}]*)\} MetricName=\"(\w+)\"")


@dataclass(frozen=True)
class Named:
    where: str
    namespace: str
    metric: str
    dimensions: frozenset[str]
    values: tuple[Any, ...] = ()
    """Of the dimensions, where they are named one by one."""


def in_expression(where: str, expression: str) -> Iterator[Named]:
    for metric, schema in _SELECT.findall(expression):
        namespace, *dimensions = [part.strip().strip('"') for part in schema.split(",")]
        yield Named(where, namespace, metric, frozenset(dimensions))
    for schema, metric in _SEARCH.findall(expression):
        namespace, *dimensions = schema.split(",")
        yield Named(where, namespace, metric, frozenset(dimensions))


def of_alarms(stack: Synthesized) -> Iterator[Named]:
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        where = alarm["AlarmName"]
        single = [{"MetricStat": {"Metric": alarm}}] if "MetricName" in alarm else []
        for query in [*single, *alarm.get("Metrics", [])]:
            if "Expression" in query:
                yield from in_expression(where, query["Expression"])
            else:
                metric = query["MetricStat"]["Metric"]
                pairs = {pair["Name"]: pair["Value"] for pair in metric["Dimensions"]}
                yield Named(where, metric["Namespace"], metric["MetricName"], frozenset(pairs), tuple(pairs.values()))


def dashboard(stack: Synthesized) -> dict[str, Any]:
    """The dashboard's body; what refers to a resource reads `<its logical id>`."""
    body = stack.one("AWS::CloudWatch::Dashboard")["DashboardBody"]
    parts = body["Fn::Join"][1] if isinstance(body, dict) else [body]
    text = "".join(part if isinstance(part, str) else f"<{_referred(part)}>" for part in parts)
    document: dict[str, Any] = json.loads(text)
    return document


def of_dashboard(stack: Synthesized) -> Iterator[Named]:
    for widget in dashboard(stack)["widgets"]:
        where = widget["properties"].get("title", "")
        for row in widget["properties"].get("metrics", []):
            if isinstance(row[0], dict):
                yield from in_expression(where, row[0]["expression"])
            else:
                namespace, metric, *pairs = [part for part in row if not isinstance(part, dict)]
                yield Named(where, namespace, metric, frozenset(pairs[::2]), tuple(pairs[1::2]))


def _referred(part: dict[str, Any]) -> str:
    return str(part["Ref"]) if "Ref" in part else str(part["Fn::GetAtt"][0])
