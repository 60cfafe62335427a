"""How CloudWatch is asked for a metric of Firstbell's own table: all its series of one cluster, whatever the pool.

A query that names other dimensions than the metric is emitted with finds nothing and says nothing, so the dimensions
always come from the table.
"""

from __future__ import annotations

from firstbell.telemetry import METRICS, NAMESPACE


def select(metric: str, statistic: str, cluster: str) -> str:
    """A Metrics Insights query for an alarm: a series, and so a contributor, for each pool (and reason...).

    It needs both GROUP BY and ORDER BY for several series:
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Create_Metrics_Insights_Alarm.html
    Raises KeyError for a metric that is not in the table.
    """
    own = [f'"{name}"' for name in METRICS[metric].dimensions]
    schema = ", ".join([f'"{NAMESPACE}"', '"cluster"', *own])
    groups = f" GROUP BY {', '.join(own)} ORDER BY {statistic}() DESC" if own else ""
    which = f"FROM SCHEMA({schema}) WHERE \"cluster\" = '{cluster}'{groups}"
    return f"SELECT {statistic}({metric}) {which}"


def search(metric: str, statistic: str, cluster: str, period_seconds: int) -> str:
    """A search expression for a widget; a line for each series.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/search-expression-syntax.html
    Raises KeyError for a metric that is not in the table.
    """
    schema = ",".join([NAMESPACE, "cluster", *METRICS[metric].dimensions])
    return f"SEARCH('{{{schema}}} MetricName=\"{metric}\" cluster=\"{cluster}\"', '{statistic}', {period_seconds})"


def series_label(metric: str) -> str:
    """What tells a series from its neighbours: `PodsShort notebook`, in CloudWatch's dynamic labels."""
    return " ".join([metric, *(f"${{PROP('Dim.{name}')}}" for name in METRICS[metric].dimensions)])
