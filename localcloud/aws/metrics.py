"""CloudWatch metrics that AWS makes by itself: from functions, from the lines they log, and from queues.

Missing upstream: embedded metrics in a log are only text, SQS publishes nothing, and AWS/Lambda counts nothing but
calls of Invoke that wait.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from localcloud.aws.environments import measured
from localcloud.aws.queues import lock
from localcloud.aws.upstream import replace, require

QUEUE_PERIOD_SECONDS = 5

logger = logging.getLogger("localcloud.metrics")


@dataclass(frozen=True)
class Datum:
    """One metric of one dimension set at `at` (Unix seconds), with every value that was given for it."""

    namespace: str
    name: str
    dimensions: dict[str, str]
    at: float
    unit: str
    values: list[float]


def install() -> None:
    """Count every execution, and watch the queues. UpstreamChanged where ministack measures differently."""
    from ministack.services import cloudwatch, lambda_svc, sqs

    require(cloudwatch, "_store_datum", "record_metric")
    require(sqs, "_queues", "_refresh_counts")

    def dispatch(func: Any, config: Any, event: Any, request_id: str, started: float) -> Any:
        measured.clear()
        result = upstream_dispatch(func, config, event, request_id, started)
        milliseconds = measured.duration_ms or (time.time() - started) * 1000
        count_execution(config["FunctionName"], bool(result.get("error")), milliseconds)
        return result

    upstream_dispatch = replace(
        lambda_svc, "_execute_function_dispatch", "func config event request_id started", dispatch
    )
    replace(lambda_svc, "_emit_lambda_metrics", "function_name duration_ms error throttle", count_throttle)
    threading.Thread(target=watch_queues, daemon=True, name="queue-metrics").start()


def count_execution(function: str, error: bool, milliseconds: float) -> None:
    from ministack.services import cloudwatch

    dimensions = {"FunctionName": function}
    cloudwatch.record_metric("AWS/Lambda", "Invocations", 1, "Count", dimensions)
    cloudwatch.record_metric("AWS/Lambda", "Errors", int(error), "Count", dimensions)
    cloudwatch.record_metric("AWS/Lambda", "Throttles", 0, "Count", dimensions)
    cloudwatch.record_metric("AWS/Lambda", "Duration", milliseconds, "Milliseconds", dimensions)


def count_throttle(function_name: str, duration_ms: float, error: bool, throttle: bool) -> None:  # noqa: ARG001
    """ministack reports a throttle where it refuses (no error) and once more where it answers (an error)."""
    from ministack.services import cloudwatch

    if throttle and not error:
        cloudwatch.record_metric("AWS/Lambda", "Throttles", 1, "Count", {"FunctionName": function_name})


def store_embedded(line: str) -> None:
    """Store the metrics of a logged line, if it has any. Call it in the account and region of the log."""
    from ministack.services import cloudwatch

    for datum in embedded_metrics(line):
        cloudwatch._store_datum(
            datum.namespace, datum.name, datum.dimensions, datum.at, datum.unit, None, datum.values, None, None
        )


def embedded_metrics(line: str) -> Iterator[Datum]:
    """The metrics in a line of the embedded metric format; none for any other line or an unusable part of one."""
    if '"_aws"' not in line:
        return
    try:
        record: Any = json.loads(line)
        about = record["_aws"]
        at, directives = about["Timestamp"] / 1000, about["CloudWatchMetrics"]
    except (ValueError, KeyError, TypeError):
        return
    for directive in directives:
        for names in directive.get("Dimensions") or [[]]:
            if any(name not in record for name in names):
                continue
            dimensions = {name: str(record[name]) for name in names}
            for metric in directive["Metrics"]:
                values = numbers(record.get(metric["Name"]))
                if values:
                    unit = metric.get("Unit", "None")
                    yield Datum(directive["Namespace"], metric["Name"], dimensions, at, unit, values)


def numbers(given: Any) -> list[float]:
    found = given if isinstance(given, list) else [given]
    return [float(value) for value in found if isinstance(value, int | float) and not isinstance(value, bool)]


def watch_queues() -> None:
    while True:
        time.sleep(QUEUE_PERIOD_SECONDS)
        try:
            publish_queues(time.time())
        except Exception:  # a queue deleted meanwhile must not end the watch
            logger.exception("queue metrics")


def publish_queues(now: float) -> None:
    """Age of the oldest message and the numbers of messages, of every queue of every account and region."""
    from ministack.core.responses import request_scope
    from ministack.services import cloudwatch, sqs

    for (account, region, _), queue in list(sqs._queues.all_items()):
        with lock:
            sqs._refresh_counts(queue)
            sent = [message.get("enqueued_at", message["sent_at"]) for message in queue["messages"]]
        attributes, dimensions = queue["attributes"], {"QueueName": queue["name"]}
        age_seconds = int(now - min(sent)) if sent else 0
        with request_scope(account, region):
            cloudwatch.record_metric("AWS/SQS", "ApproximateAgeOfOldestMessage", age_seconds, "Seconds", dimensions)
            for metric, attribute in (
                ("ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessages"),
                ("ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesNotVisible"),
                ("ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesDelayed"),
            ):
                cloudwatch.record_metric("AWS/SQS", metric, int(attributes[attribute]), "Count", dimensions)
