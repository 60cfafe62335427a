"""Follows a reservation in the ledger until there is an answer to its signal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from cli.answers import Exit, moment, progress
from cli.observer import Observer
from firstbell.capacity.reservations import Phase
from firstbell.reconcile.remedies import REMEDIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.connection import Connection
    from firstbell.capacity.reservations import Reservation
    from firstbell.cloud.ledger import LedgerView

POLL_SECONDS = 2.0

Ending = Literal["ready", "short", "rejected", "cancelled", "undecided"]

CODES: dict[Ending, Exit] = {
    "ready": Exit.DONE,
    "cancelled": Exit.DONE,
    "short": Exit.SHORT,
    "rejected": Exit.REFUSED,
    "undecided": Exit.UNDECIDED,
}


@dataclass(frozen=True, slots=True)
class Followed:
    ending: Ending
    seconds: float
    reservation: Reservation | None
    """As the ledger has it now; None where the signal never got there."""
    why: str = ""

    def words(self) -> str:
        after = f"after {self.seconds:.0f} s"
        if self.reservation is None:
            return f"nobody has taken the signal {after}; `firstbell doctor` looks for the reason"
        match self.ending:
            case "ready":
                return f"Capacity Ready {after}: there is room for {self.reservation.pods} pods"
            case "short":
                reason = self.reservation.progress.short
                remedy = next((words for known, words in REMEDIES.items() if known == reason), "")
                return f"Capacity Short {after}: {reason}. {remedy}".rstrip()
            case "rejected":
                return f"rejected {after}: {self.why}"
            case "cancelled":
                return f"cancelled {after}"
            case _:
                return f"no answer yet {after}; `firstbell status` says what it waits for"


def follow_signal(
    connection: Connection, reference: str, replaced: Reservation | None, timeout_seconds: float
) -> Followed:
    """Until the reservation that the signal leaves behind is Ready, Short or Rejected. What was stored under the
    reference before, and is replaced by it, is no answer."""
    replaced_signal = (replaced.signalled_at, replaced.revision) if replaced else None

    def ending(view: LedgerView) -> Ending | None:
        stored = view.reservation(reference)
        if stored is None or (stored.signalled_at, stored.revision) == replaced_signal:
            return None
        if stored.cancelled_at:
            return "rejected"
        if stored.progress.ready_at:
            return "ready"
        return "short" if stored.progress.short else None

    followed = _follow(connection, reference, ending, timeout_seconds)
    if followed.ending == "rejected" and followed.reservation is not None:
        return replace(followed, why=_why_rejected(connection, followed.reservation))
    return followed


def _why_rejected(connection: Connection, stored: Reservation) -> str:
    """The ledger says only that it ended early; what does not fit is found by looking again."""
    again = replace(stored, cancelled_at=0.0)
    foresight = Observer(connection).foresee(again, connection.ledger.read(), connection.clock())
    return foresight.look.situation.plan.impossible.get(stored.reference, "cancelled meanwhile")


def follow_cancellation(connection: Connection, reference: str, timeout_seconds: float) -> Followed:
    def ending(view: LedgerView) -> Ending | None:
        stored = view.reservation(reference)
        return "cancelled" if stored is not None and stored.cancelled_at else None

    return _follow(connection, reference, ending, timeout_seconds)


def _follow(
    connection: Connection, reference: str, ending: Callable[[LedgerView], Ending | None], timeout_seconds: float
) -> Followed:
    started = connection.clock()
    told = False
    while True:
        view = connection.ledger.read()
        stored = view.reservation(reference)
        seconds = connection.clock() - started
        if (how := ending(view)) is not None:
            return Followed(how, seconds, stored)
        if stored is not None and not told:
            told = True
            progress(_meanwhile(connection, stored, view))
        if seconds >= timeout_seconds:
            return Followed("undecided", seconds, stored)
        connection.sleep(min(POLL_SECONDS, timeout_seconds - seconds))


def _meanwhile(connection: Connection, stored: Reservation, view: LedgerView) -> str:
    pool = connection.settings.pool(stored.pool)
    lead_seconds = view.state(stored.pool).lead_seconds(pool.lead_minutes if pool else None)
    now = connection.clock()
    if stored.phase(now, lead_seconds) is Phase.FUTURE:
        return f"stored; nodes are asked for at {moment(stored.starts_at - lead_seconds, now)}"
    return "stored; waiting for room"
