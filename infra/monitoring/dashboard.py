"""The dashboard: a morning at a glance, interruptions, money, health; from the top in the order of a bad morning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from infra import names
from infra.monitoring.money import money
from infra.monitoring.widgets import COLUMNS, HEIGHT, Figures, graph, heading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs
    from constructs import Construct

    from infra.operator_file import ClusterEntry

Row = list[cloudwatch.IWidget]
MINUTE = Duration.minutes(1)


def add_dashboard(
    scope: Construct,
    cluster: ClusterEntry,
    figures: Figures,
    *,
    alarms: Sequence[cloudwatch.IAlarm],
    functions: Mapping[str, lambda_.Function],
    queues: Sequence[sqs.IQueue],
) -> None:
    cloudwatch.Dashboard(
        scope,
        "Dashboard",
        dashboard_name=names.stack_name(cluster.name),
        default_interval=Duration.hours(6),
        widgets=[
            *_morning(cluster.name, figures),
            *_interruptions(figures),
            *money(cluster, figures),
            *_health(figures, alarms, functions, queues),
        ],
    )


def _morning(cluster: str, figures: Figures) -> list[Row]:
    series = figures.series
    return [
        [
            heading(
                f"## {cluster}: a morning at a glance\n"
                "Figures of a pool stop where it has no reservation. A gap in headroom: the cluster could not be read."
            )
        ],
        [
            graph("Reserved pods that have not come yet", [series("OutstandingPods", "Maximum")], unit="pods"),
            graph("Headroom: places on usable nodes", [series("HeadroomPods", "Minimum")], unit="pods"),
            graph(
                "Desired units and usable nodes",
                [
                    series("DesiredUnits", "Maximum"),
                    series("UsableNodes", "Minimum"),
                    series("NodesNeverJoined", "Maximum"),
                ],
                unit="units, nodes",
            ),
        ],
        [
            graph("Pods short of capacity", [series("PodsShort", "Maximum")], unit="pods"),
            graph("Pending user pods", [series("PendingPods", "Maximum")], unit="pods"),
            graph("Longest wait of a Pending pod", [series("LongestPendingSeconds", "Maximum")], unit="seconds"),
        ],
        [
            graph(
                "Stage clock: request to each stage, median",
                [series("StageSeconds", "p50", minutes=5)],
                unit="seconds",
            ),
            graph("Stage clock, p95", [series("StageSeconds", "p95", minutes=5)], unit="seconds"),
            graph(
                "Request to Capacity Ready, median and p95",
                [series("SecondsToReady", "p50", minutes=5), series("SecondsToReady", "p95", minutes=5)],
                unit="seconds",
            ),
        ],
        [
            graph(
                "Signals",
                [
                    series(name, "Sum", minutes=5)
                    for name in ("SignalsAccepted", "SignalsRejected", "SignalsRepeated", "SignalsCancelled")
                ],
                unit="signals",
            ),
            graph(
                "Why not: shortages and failed launches by reason",
                [series("ShortByReason", "Sum", minutes=5), series("LaunchFailures", "Sum", minutes=5)],
                unit="times",
            ),
            graph(
                "Units raised, withdrawn, and lowered by others",
                [
                    series(name, "Sum", minutes=5)
                    for name in ("UnitsRaised", "UnitsWithdrawn", "OtherWriterUndone", "QuotaReached")
                ],
                unit="units, times",
            ),
        ],
    ]


def _interruptions(figures: Figures) -> list[Row]:
    series = figures.series
    return [
        [heading("## Interruptions\nFrom a notice to an empty node. Time left below zero: the instance was faster.")],
        [
            graph(
                "Notices received, and left alone",
                [series("NoticesReceived", "Sum"), series("NoticesIgnored", "Sum"), series("NoticesUnreadable", "Sum")],
                unit="notices",
            ),
            graph("Notice to cordon, p95", [series("SecondsToCordon", "p95")], unit="seconds"),
            graph("Notice to the end of the drain, p95", [series("DrainSeconds", "p95")], unit="seconds"),
        ],
        [
            graph("Least time left at a drain's end", [series("DrainSecondsLeft", "Minimum")], unit="seconds"),
            graph(
                "Pods evicted, forced, left",
                [
                    series(name, "Sum")
                    for name in ("PodsEvicted", "PodsForced", "PodsLeft", "PodsUnderTwoBudgets", "StatefulOnSpot")
                ],
                unit="pods",
            ),
            graph(
                "What went wrong, and what was replaced",
                [
                    series(name, "Sum")
                    for name in (
                        "DrainsLate",
                        "CordonFailures",
                        "PassFailures",
                        "LifecycleActionsRefused",
                        "InstancesReplaced",
                        "InstancesReleased",
                    )
                ],
                unit="times",
            ),
        ],
    ]


def _health(
    figures: Figures,
    alarms: Sequence[cloudwatch.IAlarm],
    functions: Mapping[str, lambda_.Function],
    queues: Sequence[sqs.IQueue],
) -> list[Row]:
    series = figures.series
    return [
        [heading("## Health of Firstbell itself\nEach alarm's description says what to do first.")],
        [
            cloudwatch.AlarmStatusWidget(
                title="Alarms",
                alarms=list(alarms),
                width=COLUMNS,
                height=HEIGHT,
                sort_by=cloudwatch.AlarmStatusWidgetSortBy.STATE_UPDATED_TIMESTAMP,
            )
        ],
        [
            graph(
                "Functions: errors and throttles",
                [
                    metric
                    for name, function in functions.items()
                    for metric in (
                        function.metric_errors(period=MINUTE, label=f"{name} errors"),
                        function.metric_throttles(period=MINUTE, label=f"{name} throttles"),
                    )
                ],
                unit="runs",
            ),
            graph(
                "Functions: longest run",
                [
                    function.metric_duration(period=MINUTE, statistic="Maximum", label=name)
                    for name, function in functions.items()
                ],
                unit="milliseconds",
            ),
            graph(
                "Runs, errors of the ledger, refusals",
                [
                    series(name, "Sum")
                    for name in (
                        "TickRuns",
                        "IdleRuns",
                        "LedgerErrors",
                        "ClusterAccessDenied",
                        "HeadroomUnknown",
                        "ReservationsLate",
                    )
                ],
                unit="times",
            ),
        ],
        [
            graph(
                "Queues: oldest message",
                [
                    queue.metric_approximate_age_of_oldest_message(
                        period=MINUTE, statistic="Maximum", label=queue.queue_name
                    )
                    for queue in queues
                ],
                unit="seconds",
                width=12,
            ),
            graph(
                "Queues: messages that wait",
                [
                    queue.metric_approximate_number_of_messages_visible(
                        period=MINUTE, statistic="Maximum", label=queue.queue_name
                    )
                    for queue in queues
                ],
                unit="messages",
                width=12,
            ),
        ],
    ]
