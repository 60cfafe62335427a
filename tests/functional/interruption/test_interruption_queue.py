"""The queue's adapter on SQS, and instances of a capacity reservation on EC2."""

from __future__ import annotations

import boto3
import pytest

from firstbell.cloud.capacity_reservations import CapacityReservations
from firstbell.cloud.interruption_queue import Delayed, InterruptionQueue
from firstbell.cloud.refusals import Refused
from firstbell.cloud.session import Clients
from tests.functional.interruption.conftest import REGION


@pytest.fixture
def urls(aws: Clients) -> tuple[str, str]:
    sqs = boto3.client("sqs", region_name=REGION)
    return sqs.create_queue(QueueName="main")["QueueUrl"], sqs.create_queue(QueueName="dead")["QueueUrl"]


@pytest.fixture
def queue(aws: Clients, urls: tuple[str, str]) -> InterruptionQueue:
    return InterruptionQueue(aws, *urls)


def bodies(aws: Clients, url: str) -> list[str]:
    found = []
    while messages := aws.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        found += [message["Body"] for message in messages]
    return sorted(found)


def test_more_messages_than_one_call_takes_are_all_sent(
    aws: Clients, queue: InterruptionQueue, urls: tuple[str, str]
) -> None:
    queue.send([Delayed(f"{n:02}") for n in range(23)])
    assert queue.waiting() == 23
    assert bodies(aws, urls[0]) == [f"{n:02}" for n in range(23)]


def test_a_delayed_message_is_not_waiting(queue: InterruptionQueue) -> None:
    queue.send([Delayed("later", 600), Delayed("much later", 100_000)])
    assert queue.waiting() == 0


def test_a_hidden_message_comes_back_when_it_is_said_to(
    aws: Clients, queue: InterruptionQueue, urls: tuple[str, str]
) -> None:
    queue.send([Delayed("one")])
    [message] = aws.sqs.receive_message(QueueUrl=urls[0])["Messages"]
    queue.hide([message["ReceiptHandle"]], 0)
    assert bodies(aws, urls[0]) == ["one"]
    queue.hide([], 20)


def test_what_nobody_understands_is_buried(aws: Clients, queue: InterruptionQueue, urls: tuple[str, str]) -> None:
    queue.bury(["what?"])
    assert bodies(aws, urls[1]) == ["what?"]
    assert bodies(aws, urls[0]) == []


def test_a_queue_that_is_not_there_is_refused(aws: Clients) -> None:
    with pytest.raises(Refused):
        InterruptionQueue(aws, f"https://sqs.{REGION}.amazonaws.com/111122223333/none", "x").send([Delayed("one")])


def test_a_reservation_without_instances_has_none(aws: Clients) -> None:
    assert CapacityReservations(aws).instances("cr-0aa") == []
