"""The deployed alarms, read against what the cloud's CloudWatch holds.

The local cloud does not evaluate alarms over several series. So each alarm is read as it was deployed: which metric by
which dimensions, which threshold; and its data are asked for exactly as it would ask.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from localcloud.clients import aws_client
from localcloud.cloud import LocalCloud
from tests.e2e.cluster_api import Document, await_value

STACK = "firstbell-hub"
SELECT = re.compile(r"SELECT (\w+)\((\w+)\) FROM SCHEMA\((.+?)\) WHERE \"cluster\" = '(\w+)'")
STATISTICS = {"SUM": "Sum", "MAX": "Maximum"}
AGE = "IF(waiting > 0, age, 0)"


@dataclass(frozen=True)
class Point:
    """One period of one series."""

    dimensions: dict[str, str]
    at: datetime
    value: float


class Watch:
    """What the alarms of the stack would see since this was made."""

    def __init__(self, cloud: LocalCloud) -> None:
        self.cloudwatch = aws_client(cloud, "cloudwatch")
        self.since = datetime.now(UTC).replace(second=0, microsecond=0)

    def alarm(self, name: str) -> Document:
        answer = self.cloudwatch.describe_alarms(AlarmNames=[f"{STACK}-{name}"])
        (found,) = answer["MetricAlarms"]
        alarm: Document = found
        return alarm

    def points(self, name: str) -> list[Point]:
        """What the alarm's metric or query gives, period by period."""
        alarm = self.alarm(name)
        if not alarm.get("Metrics"):
            dimensions = {pair["Name"]: pair["Value"] for pair in alarm["Dimensions"]}
            return list(self._ask(alarm["Namespace"], alarm["MetricName"], dimensions, alarm["Statistic"]))
        stats = {query["Id"]: query["MetricStat"] for query in alarm["Metrics"] if query.get("MetricStat")}
        (expression,) = [query["Expression"] for query in alarm["Metrics"] if query.get("Expression")]
        return list(self._waiting(stats) if expression == AGE else self._select(expression))

    def breaching(self, name: str, **dimensions: str) -> list[Point]:
        """The points beyond the alarm's threshold, of the series with these dimensions besides `cluster`."""
        alarm = self.alarm(name)
        assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
        return [
            point
            for point in self.points(name)
            if point.value >= alarm["Threshold"] and dimensions.items() <= point.dimensions.items()
        ]

    def await_breach(self, name: str, *, timeout_seconds: float = 100, **dimensions: str) -> Point:
        """The tick runs each minute."""
        points = await_value(
            f"alarm {name} for {dimensions}",
            lambda: self.breaching(name, **dimensions),
            bool,
            timeout_seconds=timeout_seconds,
        )
        return points[0]

    def _select(self, query: str) -> Iterator[Point]:
        """A Metrics Insights query: series whose dimensions are the schema's, no more and no less."""
        read = SELECT.match(query)
        assert read is not None, query
        statistic, metric, schema, cluster = read.groups()
        namespace, *dimensions = [part.strip().strip('"') for part in schema.split(",")]
        listed = self.cloudwatch.list_metrics(Namespace=namespace, MetricName=metric)["Metrics"]
        for series in listed:
            values = {pair["Name"]: pair["Value"] for pair in series["Dimensions"]}
            if set(values) == set(dimensions) and values["cluster"] == cluster:
                yield from self._ask(namespace, metric, values, STATISTICS[statistic])

    def _waiting(self, stats: dict[str, Document]) -> Iterator[Point]:
        series = {name: self._of(stat) for name, stat in stats.items()}
        waiting = {point.at: point.value for point in series["waiting"]}
        for point in series["age"]:
            yield Point(point.dimensions, point.at, point.value if waiting.get(point.at, 0) > 0 else 0)

    def _of(self, stat: Document) -> list[Point]:
        metric = stat["Metric"]
        dimensions = {pair["Name"]: pair["Value"] for pair in metric["Dimensions"]}
        return list(self._ask(metric["Namespace"], metric["MetricName"], dimensions, stat["Stat"]))

    def _ask(self, namespace: str, metric: str, dimensions: dict[str, str], statistic: str) -> Iterator[Point]:
        answer: Any = self.cloudwatch.get_metric_statistics(
            Namespace=namespace,
            MetricName=metric,
            Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
            StartTime=self.since,
            EndTime=datetime.now(UTC) + timedelta(minutes=1),
            Period=60,
            Statistics=[statistic],
        )
        for point in answer["Datapoints"]:
            yield Point(dimensions, point["Timestamp"], point[statistic])
