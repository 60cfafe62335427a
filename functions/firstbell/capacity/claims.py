"""Which queue message may go on with a drain. Pure.

A drain goes in passes. A pass belongs to the message that claimed it, and that message stays in the queue until the
next pass's message is in it. So at any moment a message carries the drain: a killed pass is resumed by redelivery of
its own message, and every other message of a pass that is held, or over, can be acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firstbell.capacity.drains import Phase, begun, merge, restarted

if TYPE_CHECKING:
    from firstbell.capacity.drains import Drain, News

CLAIM_SECONDS = 20.0
"""How long a claim holds: as long as the claiming message stays invisible after it was received."""
COME_BACK_SECONDS = 5.0
"""When a message that meets a pass in progress looks again."""
NEGLIGIBLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Claimed:
    """The message carries the drain: do the pass. `drain` is to be stored first."""

    drain: Drain


@dataclass(frozen=True, slots=True)
class Merged:
    """The drain goes on under another message. `drain` is to be stored, if it changed; then acknowledge.

    `nudge_seconds` says when a pass has to look at it; None if the pass that comes anyway is early enough. The nudge is
    sent before `drain` is stored, so that a crash between the two repeats it.
    """

    drain: Drain
    changed: bool
    nudge_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Stale:
    """The pass that the message asks for is held by another message, or over: acknowledge."""


@dataclass(frozen=True, slots=True)
class Early:
    """The pass before is still in progress: return the message for a moment."""

    retry_seconds: float = COME_BACK_SECONDS


def begin_or_merge(drain: Drain | None, news: News, message_id: str, now: float) -> Claimed | Merged:
    """What a notice does: begin a drain, go on with its own, or add what it says to the one under way."""
    if drain is None:
        return Claimed(_claim(begun(news), message_id, now))
    if drain.phase is Phase.DONE:
        if news.event_id in drain.event_ids:
            return Merged(drain, changed=False)
        return Claimed(_claim(restarted(drain, news), message_id, now))
    merged = merge(drain, news)
    changed = merged != drain
    if drain.holder == message_id or drain.orphaned(now):
        return Claimed(_claim(merged, message_id, now))
    return Merged(merged, changed=changed, nudge_seconds=_nudge(drain, merged, now))


def resume(drain: Drain, number: int, message_id: str, now: float) -> Claimed | Stale | Early:
    """What a continuation message, which asks for pass `number`, does."""
    if drain.phase is Phase.DONE or number < drain.number:
        return Stale()
    if not drain.held(now) or drain.holder == message_id:
        return Claimed(_claim(replace(drain, number=number), message_id, now))
    return Stale() if number == drain.number else Early()


def _claim(drain: Drain, message_id: str, now: float) -> Drain:
    return replace(drain, holder=message_id, claimed_until=now + CLAIM_SECONDS)


def _nudge(before: Drain, after: Drain, now: float) -> float | None:
    """Only a tighter deadline, a lifecycle action or a state can make the pass that comes anyway too late."""
    if (before.deadline, before.hooks, before.state) == (after.deadline, after.hooks, after.state):
        return None
    if before.held(now):
        return COME_BACK_SECONDS
    return 0.0 if before.next_at > now + NEGLIGIBLE_SECONDS else None
