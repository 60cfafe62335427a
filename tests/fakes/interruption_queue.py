"""The interruption queue in memory: visibility, delays and receive counts, on the test's clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firstbell.cloud.interruption_queue import Delayed, InterruptionQueue
from firstbell.interruption.notices import Message
from tests.fakes.faults import Call, Faults

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence


@dataclass(slots=True)
class Queued:
    id: str
    body: str
    visible_at: float
    receives: int = 0


class FakeQueue(InterruptionQueue):
    QUEUE_VISIBILITY_SECONDS = 90.0

    def __init__(self, clock: Callable[[], float], faults: Faults | None = None) -> None:
        self.clock = clock
        self.faults = faults or Faults()
        self.calls: list[Call] = []
        self.messages: list[Queued] = []
        self.buried: list[str] = []
        self.notices_waiting = 0
        """What `waiting` says beyond what is visible: the rest of a storm."""
        self._sent = 0

    # what a test, or SQS, does

    def put(self, body: str, delay_seconds: float = 0) -> str:
        self._sent += 1
        self.messages.append(Queued(f"m{self._sent}", body, self.clock() + delay_seconds))
        return self.messages[-1].id

    def receive(self, most: int = 10) -> list[Message]:
        received = [one for one in self.messages if one.visible_at <= self.clock()][:most]
        for one in received:
            one.visible_at = self.clock() + self.QUEUE_VISIBILITY_SECONDS
            one.receives += 1
        return [Message(one.id, f"receipt-{one.id}", one.body, one.receives) for one in received]

    def delete(self, message_ids: Collection[str]) -> None:
        self.messages = [one for one in self.messages if one.id not in message_ids]

    @property
    def next_at(self) -> float | None:
        """When the next message becomes visible; None for an empty queue."""
        return min((one.visible_at for one in self.messages), default=None)

    # what the code under test does

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        if receipts:
            with self._called("hide", tuple(receipts), seconds):
                for one in self.messages:
                    if f"receipt-{one.id}" in receipts:
                        one.visible_at = self.clock() + seconds

    def send(self, messages: Sequence[Delayed]) -> None:
        if messages:
            with self._called("send", tuple(messages)):
                for message in messages:
                    self.put(message.body, message.delay_seconds)

    def bury(self, bodies: Sequence[str]) -> None:
        with self._called("bury", tuple(bodies)):
            self.buried += bodies

    def waiting(self) -> int:
        with self._called("waiting"):
            return self.notices_waiting + sum(one.visible_at <= self.clock() for one in self.messages)

    def _called(self, name: str, *args: Any) -> Any:
        return self.faults.around(self.calls, name, *args)
