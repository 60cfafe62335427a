"""Who carries which drain: an instance's messages decided in order, and the outcome stored before anything is done."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from firstbell.capacity.claims import Claimed, Early, Merged, Stale, begin_or_merge, resume
from firstbell.capacity.drains import Drain, News
from firstbell.cloud.interruption_queue import Delayed
from firstbell.errors import Conflict
from firstbell.interruption.events import continuation_body
from firstbell.interruption.notices import Continuation, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from firstbell.cloud.drain_ledger import DrainLedger
    from firstbell.cloud.interruption_queue import InterruptionQueue
    from firstbell.interruption.notices import Message
    from firstbell.interruption.sorting import Wish
    from firstbell.interruption.surroundings import Surroundings

ATTEMPTS = 4
"""How often one instance's messages are decided anew after another invocation wrote its drain first."""


@dataclass(slots=True)
class Kept:
    """What an instance's messages came to."""

    drain: Drain | None
    carrier: Message | None = None
    """The message that does the pass; None where the drain goes on under another one, or none is needed."""
    back: list[Message] = field(default_factory=list)
    """Messages that have to come again."""
    changed: bool = False
    nudges: list[Delayed] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Claimer:
    ledger: DrainLedger
    queue: InterruptionQueue
    clock: Callable[[], float]

    def claim(self, instance_id: str, wishes: Sequence[Wish], around: Surroundings) -> Kept:
        """Decides and stores; anew, if another writer was first. Raises RetryLater."""
        drain = around.view.drains.get(instance_id)
        for _ in range(ATTEMPTS):
            kept = self._decide(drain, wishes, around)
            try:
                if kept.nudges:
                    self.queue.send(kept.nudges)
                if kept.drain is not None and kept.changed:
                    kept.drain = self.ledger.write(kept.drain, self.clock())
                return kept
            except Conflict:
                drain = self.ledger.read([instance_id]).drains.get(instance_id)
        return Kept(drain=None, back=[wish.message for wish in wishes])

    def _decide(self, stored: Drain | None, wishes: Sequence[Wish], around: Surroundings) -> Kept:
        """Once one of the messages carries the pass, the others need no nudge: the pass knows what they say."""
        kept = Kept(drain=stored)
        for wish in wishes:
            match self._one(kept.drain, wish, around):
                case Claimed(claim):
                    kept.drain, kept.carrier, kept.changed = claim, wish.message, True
                case Merged(merged, changed, nudge_seconds):
                    kept.drain, kept.changed = merged, kept.changed or changed
                    if nudge_seconds is not None:
                        number = merged.number + 1 if merged.held(self.clock()) else merged.number
                        kept.nudges.append(next_message(merged, number, nudge_seconds))
                case Early():
                    kept.back.append(wish.message)
                case Stale() | None:
                    pass
        if kept.carrier is not None:
            kept.nudges.clear()
        return kept

    def _one(self, drain: Drain | None, wish: Wish, around: Surroundings) -> Claimed | Merged | Stale | Early | None:
        """None: the ledger has lost the drain, and its instance belongs to no pool any more."""
        now = self.clock()
        if isinstance(wish.ask, News):
            return begin_or_merge(drain, wish.ask, wish.message.id, now)
        if drain is not None:
            return resume(drain, wish.ask.number, wish.message.id, now)
        pool = around.pool_of(wish.ask.instance_id)
        if pool is None:
            return None
        begun = begin_or_merge(
            None, _recovered(wish, wish.ask, pool.name, around.group_name(pool), now), wish.message.id, now
        )
        return Claimed(replace(begun.drain, number=wish.ask.number))


def next_message(drain: Drain, number: int, delay_seconds: float) -> Delayed:
    """The message of a later pass."""
    body = continuation_body(Continuation(drain.instance_id, number, Kind(drain.kind), drain.deadline))
    return Delayed(body, delay_seconds=max(0, math.ceil(delay_seconds)))


def _recovered(wish: Wish, ask: Continuation, pool: str, group: str, now: float) -> News:
    """What a continuation message alone knows of its drain."""
    return News(
        instance_id=ask.instance_id,
        kind=ask.kind,
        event_id=wish.message.id,
        event_time=now,
        deadline=ask.deadline,
        pool=pool,
        group=group,
    )
