"""Metrics and logs that AWS makes of what functions and queues do."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest

from localcloud.aws.metrics import embedded_metrics
from tests.functional.localcloud_aws.conftest import StartedCloud
from tests.functional.localcloud_aws.functions import eventually, invoke, make_function
from tests.functional.localcloud_aws.test_invocations import Queue

EMBEDS = """
import json, time
def handler(event, context):
    print("plain words")
    print(json.dumps({
        "_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [{
            "Namespace": "Firstbell", "Dimensions": [["service", "pool"], ["service"]],
            "Metrics": [{"Name": "NodesAsked", "Unit": "Count"}, {"Name": "ReadySeconds", "Unit": "Seconds"}]}]},
        "service": event["service"], "pool": "notebook", "NodesAsked": 3, "ReadySeconds": [30, 40],
    }))
    return context.log_stream_name
"""


def statistics(
    cloud: StartedCloud, namespace: str, name: str, dimensions: dict[str, str], statistic: str, unit: str | None = None
) -> float | None:
    now = time.time()
    points = cloud.client("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=name,
        Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
        StartTime=now - 600,
        EndTime=now + 60,
        Period=3600,
        Statistics=[statistic],
        **({"Unit": unit} if unit else {}),
    )["Datapoints"]
    return sum(point[statistic] for point in points) if points else None


def test_embedded_metrics_become_metrics_with_their_dimensions_and_units(cloud: StartedCloud) -> None:
    name = make_function(cloud, EMBEDS)
    invoke(cloud, name, {"service": name})
    both = {"service": name, "pool": "notebook"}
    assert statistics(cloud, "Firstbell", "NodesAsked", both, "Sum", "Count") == 3
    assert statistics(cloud, "Firstbell", "ReadySeconds", {"service": name}, "Maximum", "Seconds") == 40
    assert statistics(cloud, "Firstbell", "ReadySeconds", {"service": name}, "SampleCount") == 2
    listed = cloud.client("cloudwatch").list_metrics(Namespace="Firstbell", MetricName="NodesAsked")["Metrics"]
    assert [{"Name": "service", "Value": name}] in [metric["Dimensions"] for metric in listed]


def test_plain_lines_and_a_report_are_in_the_environments_own_stream(cloud: StartedCloud) -> None:
    name = make_function(cloud, EMBEDS)
    streams = {invoke(cloud, name, {"service": "s"}) for _ in range(2)}
    events = cloud.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{name}")["events"]
    assert {event["logStreamName"] for event in events} == streams
    assert len(streams) == 1
    assert sum(event["message"] == "plain words" for event in events) == 2
    cold, warm = (event["message"] for event in events if event["message"].startswith("REPORT"))
    assert "Init Duration" in cold
    assert "Init Duration" not in warm


def test_every_execution_is_counted_whoever_started_it(cloud: StartedCloud) -> None:
    name = make_function(cloud, "def handler(event, context): raise ValueError(event)\n")
    client = cloud.client("lambda")
    client.put_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=1)
    client.invoke(FunctionName=name, Payload=b"1")
    client.invoke(FunctionName=name, InvocationType="Event", Payload=b"2")
    of_function = {"FunctionName": name}
    eventually(lambda: statistics(cloud, "AWS/Lambda", "Invocations", of_function, "Sum") == 3)
    assert statistics(cloud, "AWS/Lambda", "Errors", of_function, "Sum") == 3
    client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    with pytest.raises(client.exceptions.TooManyRequestsException):
        client.invoke(FunctionName=name, Payload=b"3")
    assert statistics(cloud, "AWS/Lambda", "Throttles", of_function, "Sum") == 1
    assert statistics(cloud, "AWS/Lambda", "Invocations", of_function, "Sum") == 3


def test_a_queues_age_and_depth_are_published(cloud: StartedCloud) -> None:
    queue = Queue(cloud)
    queue.send("one", "two")
    dimensions = {"QueueName": queue.arn.rsplit(":", 1)[-1]}

    def maximum(name: str) -> float:
        return statistics(cloud, "AWS/SQS", name, dimensions, "Maximum") or 0

    eventually(lambda: maximum("ApproximateNumberOfMessagesVisible") == 2)
    eventually(lambda: maximum("ApproximateAgeOfOldestMessage") >= 1)


def test_a_line_that_is_no_usable_embedded_metric_gives_none() -> None:
    broken: list[Any] = [
        "no json",
        '{"_aws": 1}',
        '{"_aws": {"Timestamp": 1}}',
        json.dumps(
            {
                "_aws": {
                    "Timestamp": 1,
                    "CloudWatchMetrics": [
                        {"Namespace": "n", "Dimensions": [["absent"]], "Metrics": [{"Name": "m"}]},
                        {"Namespace": "n", "Metrics": [{"Name": "text"}, {"Name": "missing"}]},
                    ],
                },
                "m": 1,
                "text": "many",
            }
        ),
    ]
    assert [list(embedded_metrics(line)) for line in broken] == [[], [], [], []]


def test_long_logs_and_words_of_any_script_arrive_whole_and_with_their_own_invocation(cloud: StartedCloud) -> None:
    source = "def handler(event, context):\n    for n in range(2000): print(event, n, 'Übung 課')\n"
    name = make_function(cloud, source)
    for event in ("first", "second"):
        answer = cloud.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event), LogType="Tail")
        tail = base64.b64decode(answer["LogResult"]).decode(errors="replace").splitlines()
        assert tail[-1] == f"{event} 1999 Übung 課"
    pages = cloud.client("logs").get_paginator("filter_log_events").paginate(logGroupName=f"/aws/lambda/{name}")
    lines = [event["message"] for page in pages for event in page["events"]]
    assert sum(line.endswith("課") for line in lines) == 4000
