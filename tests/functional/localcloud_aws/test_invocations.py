"""Asynchronous invocations and the SQS event source: what is retried, given up, acknowledged."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.functional.localcloud_aws.conftest import ACCOUNT, REGION, StartedCloud
from tests.functional.localcloud_aws.functions import eventually, make_function, unique

FAILS = """
def handler(event, context):
    print("seen", event["n"])
    raise ValueError("no such pool")
"""
REPORTS = """
import json, os, time
def handler(event, context):
    for record in event["Records"]:
        print("got", record["body"], record["attributes"]["ApproximateReceiveCount"], os.getpid())
    time.sleep(float(os.environ.get("SECONDS", "0")))
    failed = json.loads(os.environ.get("FAILED", "[]"))
    return {"batchItemFailures": [
        {"itemIdentifier": "" if r["body"] == "poison" else r["messageId"]}
        for r in event["Records"] if r["body"] in failed
    ]}
"""


class Queue:
    def __init__(self, cloud: StartedCloud, **attributes: str) -> None:
        self.sqs = cloud.client("sqs")
        self.url = self.sqs.create_queue(QueueName=unique("queue"), Attributes=attributes)["QueueUrl"]

    def attribute(self, name: str) -> str:
        value: str = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=[name])["Attributes"][name]
        return value

    @property
    def arn(self) -> str:
        return self.attribute("QueueArn")

    def count(self) -> int:
        """All messages: waiting, in flight and delayed."""
        names = ("", "NotVisible", "Delayed")
        return sum(int(self.attribute(f"ApproximateNumberOfMessages{name}")) for name in names)

    def send(self, *bodies: str, **settings: Any) -> None:
        for body in bodies:
            self.sqs.send_message(QueueUrl=self.url, MessageBody=body, **settings)

    def receive(self) -> dict[str, Any]:
        (message,) = self.sqs.receive_message(QueueUrl=self.url, WaitTimeSeconds=20, MessageAttributeNames=["All"])[
            "Messages"
        ]
        found: dict[str, Any] = message
        return found


def log_lines(cloud: StartedCloud, function: str, word: str) -> list[str]:
    logs = cloud.client("logs")
    try:
        events = logs.filter_log_events(logGroupName=f"/aws/lambda/{function}", filterPattern=word)["events"]
    except logs.exceptions.ResourceNotFoundException:
        return []
    return [event["message"] for event in events if event["message"].startswith(word)]


def map_queue(cloud: StartedCloud, queue: Queue, function: str, **settings: Any) -> None:
    cloud.client("lambda").create_event_source_mapping(
        EventSourceArn=queue.arn,
        FunctionName=function,
        FunctionResponseTypes=["ReportBatchItemFailures"],
        **settings,
    )


def test_a_failing_event_is_retried_then_given_up_to_dead_letters_and_destination(cloud: StartedCloud) -> None:
    dead, destination = Queue(cloud), Queue(cloud)
    name = make_function(cloud, FAILS, DeadLetterConfig={"TargetArn": dead.arn})
    client = cloud.client("lambda")
    client.put_function_event_invoke_config(
        FunctionName=name,
        MaximumRetryAttempts=1,
        DestinationConfig={"OnFailure": {"Destination": destination.arn}},
    )
    client.invoke(FunctionName=name, InvocationType="Event", Payload=json.dumps({"n": 1}))
    letter = dead.receive()
    assert json.loads(letter["Body"]) == {"n": 1}
    assert "no such pool" in letter["MessageAttributes"]["ErrorMessage"]["StringValue"]
    record = json.loads(destination.receive()["Body"])
    assert record["requestPayload"] == {"n": 1}
    assert record["requestContext"]["approximateInvokeCount"] == 2
    assert len(log_lines(cloud, name, "seen")) == 2


def test_a_rule_invokes_a_function_with_its_retries_and_needs_its_permission(cloud: StartedCloud) -> None:
    dead = Queue(cloud)
    name = make_function(cloud, FAILS, DeadLetterConfig={"TargetArn": dead.arn})
    events, rule = cloud.client("events"), unique("rule")
    rule_arn = events.put_rule(Name=rule, EventPattern=json.dumps({"source": [rule]}))["RuleArn"]
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
    events.put_targets(Rule=rule, Targets=[{"Id": "f", "Arn": arn, "DeadLetterConfig": {"Arn": dead.arn}}])
    entry = {"Source": rule, "DetailType": "t", "Detail": '{"n": 2}'}
    events.put_events(Entries=[entry])
    assert dead.receive()["MessageAttributes"]["ERROR_CODE"]["StringValue"] == "NO_PERMISSIONS"
    cloud.client("lambda").add_permission(
        FunctionName=name,
        StatementId="rule",
        Action="lambda:InvokeFunction",
        Principal="events.amazonaws.com",
        SourceArn=rule_arn,
    )
    events.put_events(Entries=[entry])
    assert json.loads(dead.receive()["Body"])["detail"] == {"n": 2}


def test_only_messages_that_the_function_does_not_report_leave_the_queue(cloud: StartedCloud) -> None:
    dead = Queue(cloud)
    redrive = json.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": 2})
    queue = Queue(cloud, VisibilityTimeout="1", RedrivePolicy=redrive)
    name = make_function(cloud, REPORTS, Environment={"Variables": {"FAILED": '["bad"]'}})
    map_queue(cloud, queue, name)
    queue.send("good", "bad")
    assert dead.receive()["Body"] == "bad"
    assert queue.count() == 0
    got = sorted(line.split()[1:3] for line in log_lines(cloud, name, "got"))
    assert got == [["bad", "1"], ["bad", "2"], ["good", "1"]]


def test_a_report_that_names_no_message_fails_the_whole_batch(cloud: StartedCloud) -> None:
    queue = Queue(cloud, VisibilityTimeout="60")
    name = make_function(cloud, REPORTS, Environment={"Variables": {"FAILED": '["poison"]'}})
    queue.send("poison", "bystander")
    map_queue(cloud, queue, name)
    eventually(lambda: len(log_lines(cloud, name, "got")) == 2)
    assert queue.attribute("ApproximateNumberOfMessagesNotVisible") == "2"


def test_batches_run_in_several_environments_at_once(cloud: StartedCloud) -> None:
    queue = Queue(cloud)
    name = make_function(cloud, REPORTS, Timeout=20, Environment={"Variables": {"SECONDS": "2"}})
    queue.send(*(str(number) for number in range(4)))
    map_queue(cloud, queue, name, BatchSize=1)
    eventually(lambda: queue.count() == 0)
    assert len({line.split()[-1] for line in log_lines(cloud, name, "got")}) > 1


def test_a_changed_visibility_and_a_delay_hold_a_message_back(cloud: StartedCloud) -> None:
    queue = Queue(cloud, VisibilityTimeout="30")
    queue.send("later", DelaySeconds=1)
    assert "Messages" not in queue.sqs.receive_message(QueueUrl=queue.url)
    first = queue.receive()
    queue.sqs.change_message_visibility(QueueUrl=queue.url, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=1)
    again = queue.receive()
    assert again["MessageId"] == first["MessageId"]
    assert again["ReceiptHandle"] != first["ReceiptHandle"]


def test_no_message_is_lost_between_senders_and_the_event_source(cloud: StartedCloud) -> None:
    queue = Queue(cloud)
    name = make_function(cloud, REPORTS)
    map_queue(cloud, queue, name)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: queue.send(f"m{number}"), range(300)))
    eventually(lambda: queue.count() == 0, timeout_seconds=60)
    assert {line.split()[1] for line in log_lines(cloud, name, "got")} == {f"m{number}" for number in range(300)}


def test_a_killed_environment_loses_no_message(cloud: StartedCloud) -> None:
    queue = Queue(cloud, VisibilityTimeout="4")
    name = make_function(cloud, REPORTS, Timeout=20, Environment={"Variables": {"SECONDS": "2"}})
    queue.send("survivor")
    map_queue(cloud, queue, name)
    busy = eventually(lambda: [row for row in cloud.get("/_localcloud/environments") if row["function"] == name])
    os.kill(busy[0]["pid"], signal.SIGKILL)
    eventually(lambda: queue.count() == 0, timeout_seconds=30)
    assert log_lines(cloud, name, "got")[-1].split()[2] == "2"


def test_a_throttled_event_is_tried_again_until_there_is_room(cloud: StartedCloud) -> None:
    name = make_function(cloud, "import time\ndef handler(e, c):\n    print('seen', e)\n    time.sleep(1.5)\n")
    client = cloud.client("lambda")
    client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=1)
    client.put_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=0)
    for number in range(3):
        client.invoke(FunctionName=name, InvocationType="Event", Payload=json.dumps(number))
    eventually(lambda: len(log_lines(cloud, name, "seen")) == 3)
