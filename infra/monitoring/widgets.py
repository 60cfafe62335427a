"""Widgets of the dashboard, of metrics of Firstbell's own table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from infra.monitoring.queries import search, series_label

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS = 24
"""Of a CloudWatch dashboard."""
HEIGHT = 6


@dataclass(frozen=True, slots=True)
class Figures:
    """Series of one cluster, whatever its pools are called."""

    cluster: str

    def series(self, metric: str, statistic: str, *, minutes: int = 1, wrap: str = "{}") -> cloudwatch.MathExpression:
        """Every series of the metric. `wrap` puts a function around the search: `RUNNING_SUM({})`."""
        found = search(metric, statistic, self.cluster, minutes * 60)
        return cloudwatch.MathExpression(
            expression=wrap.format(found),
            using_metrics={},
            label=f"{series_label(metric)} {statistic}" if statistic.startswith("p") else series_label(metric),
            period=Duration.minutes(minutes),
        )


def graph(title: str, series: Sequence[cloudwatch.IMetric], *, unit: str, width: int = 8) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(
        title=title,
        left=list(series),
        left_y_axis=cloudwatch.YAxisProps(min=0, label=unit, show_units=False),
        width=width,
        height=HEIGHT,
    )


def heading(text: str) -> cloudwatch.TextWidget:
    return cloudwatch.TextWidget(markdown=text, width=COLUMNS, height=2)
