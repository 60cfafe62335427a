"""Our own event bus: where outcomes go."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firstbell.cloud.refusals import HEALED_BY_WAITING, Refused, translated
from firstbell.errors import RetryLater
from firstbell.outcomes import SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mypy_boto3_events.type_defs import PutEventsRequestEntryTypeDef, PutEventsResultEntryTypeDef

    from firstbell.cloud.session import Clients

ENTRIES_PER_CALL = 10
BYTES_PER_CALL = 256 * 1024
"""https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html#eb-putevent-size"""
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class OutcomeEvent:
    """One outcome; its detail must be JSON."""

    detail_type: str
    detail: Mapping[str, Any]


class Bus:
    def __init__(self, clients: Clients, name: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._clients = clients
        self._name = name
        self._sleep = sleep

    def publish(self, events: Sequence[OutcomeEvent]) -> None:
        """Put all events, ten at a time and in order, and those that failed again, twice.

        Raises RetryLater if some still fail (the others are out: consumers drop repeats by `outcome_id`), Refused
        where EventBridge will never take one, AccessDenied.
        """
        for chunk in self._chunks(events):
            self._put(chunk)

    def _put(self, entries: list[PutEventsRequestEntryTypeDef]) -> None:
        for attempt in range(ATTEMPTS):
            if attempt:
                self._sleep(0.2 * 2 ** (attempt - 1))
            with translated("events:PutEvents"):
                results = self._clients.events.put_events(Entries=entries)["Entries"]
            failed = [(entry, result) for entry, result in zip(entries, results, strict=True) if "ErrorCode" in result]
            if not failed:
                return
            _raise_for_good([result for _, result in failed])
            entries = [entry for entry, _ in failed]
        raise RetryLater(f"events:PutEvents: {len(entries)} events were not taken: {failed[0][1].get('ErrorMessage')}")

    def _chunks(self, events: Sequence[OutcomeEvent]) -> Iterator[list[PutEventsRequestEntryTypeDef]]:
        chunk: list[PutEventsRequestEntryTypeDef] = []
        chunk_bytes = 0
        for event in events:
            detail = json.dumps(event.detail, separators=(",", ":"))
            entry_bytes = len(SOURCE) + len(event.detail_type.encode()) + len(detail.encode())
            if chunk and (len(chunk) == ENTRIES_PER_CALL or chunk_bytes + entry_bytes > BYTES_PER_CALL):
                yield chunk
                chunk, chunk_bytes = [], 0
            chunk.append(
                {"EventBusName": self._name, "Source": SOURCE, "DetailType": event.detail_type, "Detail": detail}
            )
            chunk_bytes += entry_bytes
        if chunk:
            yield chunk


def _raise_for_good(failed: Sequence[PutEventsResultEntryTypeDef]) -> None:
    for result in failed:
        code = result.get("ErrorCode", "")
        if code not in HEALED_BY_WAITING:
            raise Refused("events:PutEvents", code, result.get("ErrorMessage", ""))
