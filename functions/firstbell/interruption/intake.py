"""From a batch of messages to what each asks for of which instance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.interruption.events import parse
from firstbell.interruption.notices import Continuation, Ignored, Interruption, Kind, Unparseable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from firstbell.capacity.pools import Pool
    from firstbell.interruption.notices import Message


@dataclass(frozen=True, slots=True)
class Asked:
    """One message that asks something of us."""

    message: Message
    notice: Interruption | Continuation


@dataclass(frozen=True, slots=True)
class Batch:
    asked: tuple[Asked, ...]
    ignored: tuple[str, ...]
    """Reasons, one a message."""
    unreadable: tuple[tuple[Message, str], ...]
    """Messages that nobody understands, and what is wrong with them."""


def read_batch(messages: Iterable[Message], pools: Iterable[Pool]) -> Batch:
    """Sorts a batch without asking anybody: what concerns no pool's policy is told here, before any client is made."""
    asked, ignored, unreadable = [], [], []
    recommendations_matter = any(pool.interruption.rebalance != "observe" for pool in pools)
    for message in messages:
        try:
            notice = parse(message.body)
        except Unparseable as error:
            unreadable.append((message, str(error)))
            continue
        match notice:
            case Ignored(reason):
                ignored.append(reason)
            case Interruption(kind=Kind.REBALANCE) if not recommendations_matter:
                ignored.append("rebalance_observed")
            case Interruption() | Continuation():
                asked.append(Asked(message, notice))
    return Batch(tuple(asked), tuple(ignored), tuple(unreadable))
