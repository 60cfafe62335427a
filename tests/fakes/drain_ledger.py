"""The drain ledger in memory."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firstbell.capacity.changes import updated
from firstbell.capacity.drains import drain_as_document, drain_from_document
from firstbell.cloud.drain_ledger import Detached, DrainLedger, DrainView, Held
from firstbell.errors import Conflict, NotFound
from tests.fakes.faults import Call, Faults

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

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
            self.change_by_arn[news.event_arn] = updated(self.change_by_arn.get(news.event_arn), news)
            return self.change_by_arn[news.event_arn]

    def write_change(self, change: Change) -> Change:
        with self._called("write_change", change.event_arn):
            self.change_by_arn[change.event_arn] = change
            return change

    def changes(self) -> list[Change]:
        with self._called("changes"):
            return list(self.change_by_arn.values())

    def remember_detached(self, detached: Iterable[Detached]) -> None:
        for one in detached:
            with self._called("remember_detached", one.instance_id):
                self.detached_by_id[one.instance_id] = one

    def detached(self) -> list[Detached]:
        with self._called("detached"):
            return list(self.detached_by_id.values())

    def forget_detached(self, instance_ids: Sequence[str]) -> None:
        for instance_id in instance_ids:
            with self._called("forget_detached", instance_id):
                self.detached_by_id.pop(instance_id, None)

    def remember_held(self, held: Held) -> None:
        with self._called("remember_held", held.instance_id):
            self.held_by_id[held.instance_id] = held

    def held(self) -> list[Held]:
        with self._called("held"):
            return list(self.held_by_id.values())

    def forget_held(self, instance_id: str) -> None:
        with self._called("forget_held", instance_id):
            self.held_by_id.pop(instance_id, None)

    def _called(self, name: str, *args: Any) -> Any:
        return self.faults.around(self.calls, name, *args)
