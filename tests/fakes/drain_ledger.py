"""The drain ledger in memory."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firstbell.capacity.changes import updated
from firstbell.capacity.drains import drain_as_document, drain_from_document
from firstbell.cloud.drain_ledger import Detached, DrainLedger, DrainView, Held, Remembered
from firstbell.errors import Conflict, NotFound
from tests.fakes.faults import Call, Faults

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from firstbell.capacity.changes import Change
    from firstbell.capacity.drains import Drain


class FakeDrainLedger(DrainLedger):
    """Conditional on versions like the table; `write` raises Conflict where another writer was first."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self.calls: list[Call] = []
        self.paused = False
        self.change_by_arn: dict[str, Change] = {}
        self.detached_by_id: dict[str, Detached] = {}
        self.held_by_id: dict[str, Held] = {}
        self._documents: dict[str, str] = {}

    def drain(self, instance_id: str) -> Drain | None:
        """What a test looks at; not a call."""
        document = self._documents.get(instance_id)
        return None if document is None else drain_from_document(json.loads(document))

    def lose(self, instance_id: str) -> None:
        del self._documents[instance_id]

    def read(self, instance_ids: Collection[str]) -> DrainView:
        with self._called("read", tuple(sorted(instance_ids))):
            found = {i: self.drain(i) for i in instance_ids}
            return DrainView({i: drain for i, drain in found.items() if drain is not None}, self.paused)

    def write(self, drain: Drain, now: float) -> Drain:
        with self._called("write", drain.instance_id):
            present = self.drain(drain.instance_id)
            if (present.version if present else 0) != drain.version:
                raise Conflict(f"the drain of {drain.instance_id} was written by another")
            stored = replace(drain, version=drain.version + 1)
            self._documents[drain.instance_id] = json.dumps(drain_as_document(stored))
            return stored

    def update(self, instance_id: str, change: Callable[[Drain], Drain], now: float) -> Drain:
        with self._called("update", instance_id):
            present = self.drain(instance_id)
            if present is None:
                raise NotFound(f"no drain of {instance_id}")
            stored = replace(change(present), version=present.version + 1)
            self._documents[instance_id] = json.dumps(drain_as_document(stored))
            return stored

    def store_change(self, news: Change) -> Change:
        with self._called("store_change", news.event_arn):
            return self._put_change(updated(self.change_by_arn.get(news.event_arn), news))

    def write_change(self, change: Change) -> Change:
        with self._called("write_change", change.event_arn):
            present = self.change_by_arn.get(change.event_arn)
            if (present.version if present else 0) != change.version:
                raise Conflict(f"{change.event_arn} was written by another")
            return self._put_change(change)

    def remembered(self) -> Remembered:
        with self._called("remembered"):
            return Remembered(
                list(self.change_by_arn.values()), list(self.detached_by_id.values()), list(self.held_by_id.values())
            )

    def remember_detached(self, detached: Iterable[Detached]) -> None:
        for one in detached:
            with self._called("remember_detached", one.instance_id):
                self.detached_by_id[one.instance_id] = one

    def forget_detached(self, instance_id: str) -> None:
        with self._called("forget_detached", instance_id):
            self.detached_by_id.pop(instance_id, None)

    def remember_held(self, held: Held) -> None:
        with self._called("remember_held", held.instance_id):
            self.held_by_id[held.instance_id] = held

    def forget_held(self, held: Held) -> None:
        with self._called("forget_held", held.instance_id):
            if self.held_by_id.get(held.instance_id) == held:
                del self.held_by_id[held.instance_id]

    def _put_change(self, change: Change) -> Change:
        self.change_by_arn[change.event_arn] = replace(change, version=change.version + 1)
        return self.change_by_arn[change.event_arn]

    def _called(self, name: str, *args: Any) -> Any:
        return self.faults.around(self.calls, name, *args)
