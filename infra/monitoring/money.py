"""What the pools cost, and what idle nodes that went have saved: node-hours, priced where the types are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from firstbell.telemetry import NAMESPACE
from infra.monitoring.widgets import Figures, graph, heading
from infra.operator_file import group_name
from infra.prices import PRICES_FILE, Prices, load_prices

if TYPE_CHECKING:
    from infra.operator_file import ClusterEntry, PoolEntry

PERIOD_MINUTES = 5
PERIOD = Duration.minutes(PERIOD_MINUTES)


def money(cluster: ClusterEntry, figures: Figures) -> list[list[cloudwatch.IWidget]]:
    prices = load_prices()
    priced = {pool.name: price for pool in cluster.pools if (price := _dollars_per_hour(prices, cluster, pool))}
    row: list[cloudwatch.IWidget] = [
        graph("Instances in service", [_instances(cluster, pool) for pool in cluster.pools], unit="instances"),
        graph(
            "Node-hours so far in this range",
            [_so_far(cluster, pool, f"{pool.name} node-hours") for pool in cluster.pools],
            unit="hours",
        ),
    ]
    if priced:
        row.append(
            graph(
                "Their price so far",
                [
                    _so_far(cluster, pool, f"{pool.name} USD", priced[pool.name])
                    for pool in cluster.pools
                    if pool.name in priced
                ],
                unit="USD",
            )
        )
    words = _words(prices, unpriced=[p.name for p in cluster.pools if p.name not in priced])
    return [[heading(words)], row, _saved(cluster, figures, priced)]


def _saved(cluster: ClusterEntry, figures: Figures, priced: dict[str, float]) -> list[cloudwatch.IWidget]:
    widgets: list[cloudwatch.IWidget] = [
        graph(
            "Nodes without user pods, removed, given back, kept",
            [
                figures.series("NodesIdle", "Maximum", minutes=5),
                figures.series("NodesRemoved", "Sum", minutes=5),
                figures.series("NodesReopened", "Sum", minutes=5),
                figures.series("NodesKept", "Maximum", minutes=5),
            ],
            unit="nodes",
        ),
        graph(
            "Idle node-hours saved so far in this range",
            [figures.series("NodeHoursRemoved", "Sum", minutes=5, wrap="RUNNING_SUM({})")],
            unit="hours",
        ),
        graph(
            "How long idle nodes wait for a person",
            [figures.series("IdleBlockedSeconds", "Maximum", minutes=5)],
            unit="seconds",
        ),
    ]
    if priced:
        saved = [
            _saved_dollars(cluster.name, pool, price, f"hours{number}")
            for number, (pool, price) in enumerate(priced.items())
        ]
        widgets.append(graph("Their price so far", saved, unit="USD"))
    return widgets


def _saved_dollars(cluster: str, pool: str, price: float, hours: str) -> cloudwatch.MathExpression:
    metric = cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name="NodeHoursRemoved",
        dimensions_map={"cluster": cluster, "pool": pool},
        statistic="Sum",
        period=PERIOD,
    )
    return cloudwatch.MathExpression(
        expression=f"RUNNING_SUM(FILL({hours}, 0)) * {price:g}",
        using_metrics={hours: metric},
        label=f"{pool} USD saved",
        period=PERIOD,
    )


def _instances(cluster: ClusterEntry, pool: PoolEntry) -> cloudwatch.IMetric:
    """Auto Scaling's own count. EKS names the group of a managed node group; a search finds it by its beginning."""
    group = group_name(cluster, pool)
    if group is not None:
        return cloudwatch.Metric(
            namespace="AWS/AutoScaling",
            metric_name="GroupInServiceInstances",
            dimensions_map={"AutoScalingGroupName": group},
            statistic="Average",
            period=PERIOD,
            label=pool.name,
        )
    found = (
        'SEARCH(\'{AWS/AutoScaling,AutoScalingGroupName} MetricName="GroupInServiceInstances" '
        f"\"eks-{pool.nodegroup}-\"', 'Average', {PERIOD.to_seconds():g})"
    )
    return cloudwatch.MathExpression(expression=f"SUM({found})", using_metrics={}, label=pool.name, period=PERIOD)


def _so_far(
    cluster: ClusterEntry, pool: PoolEntry, label: str, price: float | None = None
) -> cloudwatch.MathExpression:
    """Node-hours since the beginning of the range that is looked at, or their price."""
    instances = f"instances{cluster.pools.index(pool)}"
    hours = f"RUNNING_SUM(FILL({instances}, 0)) * {PERIOD_MINUTES} / 60"
    return cloudwatch.MathExpression(
        expression=hours if price is None else f"{hours} * {price:g}",
        using_metrics={instances: _instances(cluster, pool)},
        label=label,
        period=PERIOD,
    )


def _dollars_per_hour(prices: Prices, cluster: ClusterEntry, pool: PoolEntry) -> float | None:
    """The mean of the pool's types, on demand; None where a type or its price is not known here."""
    types = [instance.type for instance in pool.create.instances] if pool.create else []
    known = [price for name in types if (price := prices.on_demand(cluster.region, name)) is not None]
    return sum(known) / len(known) if types and len(known) == len(types) else None


def _words(prices: Prices, *, unpriced: list[str]) -> str:
    words = f"## Money\nOn-demand prices of {prices.as_of} ({PRICES_FILE.name}); Spot costs less."
    if unpriced:
        words += f" Not priced: {', '.join(unpriced)}."
    return f"{words} Groups that are not made here count only with their group metrics enabled."
