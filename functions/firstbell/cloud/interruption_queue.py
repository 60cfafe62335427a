"""The interruption queue: hide and bring back what was received, send what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from firstbell.cloud.refusals import translated
from firstbell.errors import RetryLater

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from firstbell.cloud.session import Clients

T = TypeVar("T")

PER_CALL = 10
"""https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html"""
LONGEST_DELAY_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Delayed:
    """A message to send, visible only after the delay (whole seconds, at most 15 minutes)."""

    body: str
    delay_seconds: int = 0


class InterruptionQueue:
    """Every method may raise RetryLater, AccessDenied or Refused."""

    def __init__(self, clients: Clients, url: str, dead_letter_url: str = "") -> None:
        """`dead_letter_url` is for whoever buries."""
        self._clients = clients
        self._url = url
        self._dead_letter_url = dead_letter_url

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        """These messages become visible again `seconds` from now, unless deleted. One that is gone is no error."""
        for chunk in _chunks(enumerate(receipts)):
            with translated("sqs:ChangeMessageVisibility"):
                self._clients.sqs.change_message_visibility_batch(
                    QueueUrl=self._url,
                    Entries=[
                        {"Id": str(n), "ReceiptHandle": receipt, "VisibilityTimeout": seconds} for n, receipt in chunk
                    ],
                )

    def send(self, messages: Sequence[Delayed]) -> None:
        """Raises RetryLater where one of them was not taken; the others may be in the queue then."""
        self._send(self._url, messages)

    def bury(self, bodies: Sequence[str]) -> None:
        """Copy bodies that nobody understands into the dead-letter queue, for a person to look at."""
        self._send(self._dead_letter_url, [Delayed(body) for body in bodies])

    def waiting(self) -> int:
        """About how many messages are visible and not received yet."""
        with translated("sqs:GetQueueAttributes"):
            answer = self._clients.sqs.get_queue_attributes(
                QueueUrl=self._url, AttributeNames=["ApproximateNumberOfMessages"]
            )
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])

    def _send(self, url: str, messages: Sequence[Delayed]) -> None:
        for chunk in _chunks(enumerate(messages)):
            with translated("sqs:SendMessage"):
                answer = self._clients.sqs.send_message_batch(
                    QueueUrl=url,
                    Entries=[
                        {
                            "Id": str(n),
                            "MessageBody": message.body,
                            "DelaySeconds": min(message.delay_seconds, LONGEST_DELAY_SECONDS),
                        }
                        for n, message in chunk
                    ],
                )
            if failed := answer.get("Failed"):
                raise RetryLater(f"sqs:SendMessage: {failed[0].get('Code')}: {failed[0].get('Message', '')}")


def _chunks(items: Iterable[tuple[int, T]]) -> Iterator[list[tuple[int, T]]]:
    rest = iter(items)
    while chunk := list(islice(rest, PER_CALL)):
        yield chunk
