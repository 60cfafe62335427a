"""A tap on Firstbell's bus: a rule and a queue of the demo's own, read as any consumer would."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PATTERN = {"source": [{"prefix": ""}]}
NAME = "morning-tap"


@dataclass(frozen=True)
class Heard:
    """One event as it came out of the bus, and when (Unix seconds)."""

    at: float
    source: str
    detail_type: str
    detail: dict[str, Any]


def admission(queue: str, rule: str) -> dict[str, Any]:
    """Lets the one rule send to the queue
    (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html#eb-sqs-permissions)."""
    return {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue,
        "Condition": {"ArnEquals": {"aws:SourceArn": rule}},
    }


class Tap:
    """Listens from `start` to `stop`; every event goes to `hear`, on the tap's own thread."""

    def __init__(self, events: Any, sqs: Any, bus: str, hear: Callable[[Heard], None]) -> None:
        self._sqs = sqs
        self._hear = hear
        self._stopped = threading.Event()
        self._seen: set[str] = set()
        rule = events.put_rule(Name=NAME, EventBusName=bus, EventPattern=json.dumps(PATTERN))["RuleArn"]
        self._queue = sqs.create_queue(QueueName=NAME)["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=self._queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        policy = json.dumps({"Version": "2012-10-17", "Statement": [admission(arn, rule)]})
        sqs.set_queue_attributes(QueueUrl=self._queue, Attributes={"Policy": policy})
        events.put_targets(Rule=NAME, EventBusName=bus, Targets=[{"Id": "queue", "Arn": arn}])
        self._thread = threading.Thread(target=self._listen, name="tap", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _listen(self) -> None:
        while not self._stopped.is_set():
            answer = self._sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            for message in answer.get("Messages", ()):
                event = json.loads(message["Body"])
                self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"])
                if event["id"] in self._seen:  # the bus and the queue deliver at least once
                    continue
                self._seen.add(event["id"])
                self._hear(Heard(time.time(), event["source"], event["detail-type"], event["detail"]))
