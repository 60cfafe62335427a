"""Metrics and logs. Every metric that Firstbell emits is a row of `METRICS`; nothing else is emitted.

Metrics leave as CloudWatch embedded metric format, one line each, so that each has exactly its own dimensions.
References and instance ids are never dimensions: they would be personal data in a place that can't forget, and each
would cost a metric.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from firstbell.errors import FirstbellError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from firstbell.outcomes import Outcome

NAMESPACE = "Firstbell"


@dataclass(frozen=True, slots=True)
class Metric:
    unit: MetricUnit
    dimensions: tuple[str, ...]
    """Besides `cluster`, which every metric has."""
    meaning: str


METRICS: Mapping[str, Metric] = {
    "SignalsAccepted": Metric(MetricUnit.Count, ("pool",), "Demand signals stored as reservations."),
    "SignalsRejected": Metric(MetricUnit.Count, (), "Demand signals answered with Signal Rejected."),
    "SignalsRepeated": Metric(MetricUnit.Count, (), "Demand signals that were nothing newer than what is stored."),
    "SignalsCancelled": Metric(MetricUnit.Count, (), "Reservations ended by Demand Cancelled."),
    "UnitsRaised": Metric(MetricUnit.Count, ("pool",), "Units by which desired capacity was raised."),
    "UnitsWithdrawn": Metric(MetricUnit.Count, ("pool",), "Units that could not be launched and were withdrawn."),
    "PodsShort": Metric(MetricUnit.Count, ("pool",), "Pods that neither this pool nor its fallback pools can take."),
    "ShortByReason": Metric(MetricUnit.Count, ("pool", "reason"), "Times that Capacity Short was said."),
    "OutstandingPods": Metric(MetricUnit.Count, ("pool",), "Reserved pods that have not arrived yet."),
    "PendingPods": Metric(MetricUnit.Count, ("pool",), "User pods that wait for a node."),
    "LongestPendingSeconds": Metric(MetricUnit.Seconds, ("pool",), "Age of the oldest user pod that waits."),
    "DesiredUnits": Metric(MetricUnit.Count, ("pool",), "Desired capacity as it was found, in the group's units."),
    "UsableNodes": Metric(MetricUnit.Count, ("pool",), "Ready, schedulable nodes of the pool."),
    "HeadroomPods": Metric(MetricUnit.Count, ("pool",), "Pods of the pool's usual size that usable nodes can take."),
    "NodesNeverJoined": Metric(MetricUnit.Count, ("pool",), "Instances without a Ready node after 10 minutes."),
    "HeadroomUnknown": Metric(MetricUnit.Count, ("pool",), "Sizings without sight of the cluster (0 with it)."),
    "ClusterAccessDenied": Metric(MetricUnit.Count, (), "The Kubernetes API refused our token or our verbs."),
    "LaunchFailures": Metric(MetricUnit.Count, ("pool", "reason"), "Launches of the group that failed."),
    "QuotaReached": Metric(MetricUnit.Count, ("pool",), "Launches refused by an AWS quota."),
    "OtherWriterUndone": Metric(MetricUnit.Count, ("pool",), "Times that desired was lowered under a reservation."),
    "ReservationsLate": Metric(MetricUnit.Count, ("pool",), "Reservations that were not Ready when they started."),
    "SecondsToReady": Metric(MetricUnit.Seconds, ("pool",), "From request to Capacity Ready."),
    "StageSeconds": Metric(MetricUnit.Seconds, ("pool", "stage"), "Stage clock: from request to each stage."),
    "NoticesReceived": Metric(MetricUnit.Count, ("kind",), "Notices that an instance goes, each instance counted."),
    "NoticesIgnored": Metric(MetricUnit.Count, ("reason",), "Messages of the interruption queue that ask nothing."),
    "NoticesUnreadable": Metric(MetricUnit.Count, (), "Messages of the interruption queue that nobody understands."),
    "SecondsToCordon": Metric(MetricUnit.Seconds, ("pool", "kind"), "From a notice to its node's cordon."),
    "CordonFailures": Metric(MetricUnit.Count, ("pool",), "Cordons that could not be made and are tried again."),
    "PassFailures": Metric(MetricUnit.Count, ("pool",), "Passes of drains that could not be done and are tried again."),
    "PodsEvicted": Metric(MetricUnit.Count, ("pool",), "Evictions that were accepted."),
    "PodsForced": Metric(MetricUnit.Count, ("pool",), "Pods deleted past their budget or their own grace."),
    "PodsLeft": Metric(MetricUnit.Count, ("pool",), "Pods that were still there when their drain was over."),
    "PodsUnderTwoBudgets": Metric(MetricUnit.Count, ("pool",), "Evictions that two budgets make impossible."),
    "DrainSeconds": Metric(MetricUnit.Seconds, ("pool",), "From a notice to the end of its drain."),
    "DrainSecondsLeft": Metric(MetricUnit.Seconds, ("pool",), "From the end of a drain to its deadline."),
    "DrainsLate": Metric(MetricUnit.Count, ("pool",), "Drains that the deadline ended."),
    "LifecycleActionsRefused": Metric(MetricUnit.Count, ("pool",), "Lifecycle actions that AWS refuses to complete."),
    "InstancesReplaced": Metric(MetricUnit.Count, ("pool",), "Doomed Spot instances replaced at their notice."),
    "InstancesReleased": Metric(MetricUnit.Count, ("pool",), "Doomed Spot instances that need no replacement."),
    "StatefulOnSpot": Metric(MetricUnit.Count, ("pool",), "Spot notices in a pool whose pods must not be lost."),
    "NodesIdle": Metric(MetricUnit.Count, ("pool",), "Nodes without user pods, whatever else keeps them."),
    "NodesKept": Metric(MetricUnit.Count, ("pool", "reason"), "Nodes that stay in a quiet window."),
    "NodesRemoved": Metric(MetricUnit.Count, ("pool",), "Idle nodes that were removed."),
    "NodeHoursRemoved": Metric(MetricUnit.Count, ("pool",), "Hours that removed nodes have not run, as they pass."),
    "NodesReopened": Metric(MetricUnit.Count, ("pool",), "Idle nodes given back before they were removed."),
    "IdleBlockedSeconds": Metric(MetricUnit.Seconds, ("pool",), "For how long an idle node waits for a person."),
    "IdleRuns": Metric(MetricUnit.Count, (), "Evaluations of idle nodes that came to their end."),
    "TickRuns": Metric(MetricUnit.Count, (), "Runs of tick that came to their end."),
    "LedgerErrors": Metric(MetricUnit.Count, (), "Runs, or passes of a drain, that an error of the ledger ended."),
}


class Telemetry:
    """Where a run reports figures and words."""

    def __init__(self, cluster: str, logger: Logger) -> None:
        self._cluster = cluster
        self.log = logger

    def emit(self, name: str, value: float = 1, **dimensions: str) -> None:
        """One value of a metric of `METRICS`; raises KeyError for any other name, ValueError for other dimensions."""
        metric = METRICS[name]
        if set(dimensions) != set(metric.dimensions):
            raise ValueError(f"{name} has the dimensions {metric.dimensions}, not {tuple(dimensions)}")
        # An empty service: Powertools would add the function's as a dimension, and alarms ask for these and no others.
        line = AmazonCloudWatchEMFProvider(namespace=NAMESPACE, service="")
        line.add_metric(name=name, unit=metric.unit, value=value)
        for dimension, text in {"cluster": self._cluster, **dimensions}.items():
            line.add_dimension(dimension, text)
        print(json.dumps(line.serialize_metric_set(), separators=(",", ":")))

    def log_outcomes(self, outcomes: Iterable[Outcome]) -> None:
        """What was published, kept where the operator's saved queries find it."""
        for outcome in outcomes:
            self.log.info(outcome.DETAIL_TYPE, outcome=outcome.as_detail())

    @contextmanager
    def counting_ledger_errors(self) -> Iterator[None]:
        """Around a run: counts the ledger's error that ends it."""
        try:
            yield
        except FirstbellError as error:
            if is_ledgers(error):
                self.emit("LedgerErrors")
            raise


def is_ledgers(error: Exception) -> bool:
    return isinstance(error, FirstbellError) and error.operation.startswith("dynamodb:")
