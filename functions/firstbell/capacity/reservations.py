"""Reservations: what a demand signal leaves behind until it ends. Pure; times are Unix seconds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from firstbell.capacity.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Iterable

REFERENCE_LABEL = "firstbell.dev/reference"
"""Pod label that says for which reservation a pod arrives."""

REMEMBERED_SECONDS = 24 * 3600
"""How long after its end a reference is remembered, so that a replayed signal buys nothing."""


class Phase(StrEnum):
    FUTURE = "future"
    LIVE = "live"
    ENDED = "ended"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the pool has come for one reservation. 0 = not yet."""

    requested_at: float = 0.0
    """The pool was first brought to what the reservation needs (Capacity Requested was sent)."""
    asked_at: float = 0.0
    """The same of whatever stood first under the reference in this pool: a correction keeps it."""
    raised_at: float = 0.0
    """Desired capacity was raised for it; 0 where the headroom sufficed."""
    ready_at: float = 0.0
    """Ready nodes covered it for the first time (Capacity Ready was sent)."""
    first_pod_ready_at: float = 0.0
    short: str = ""
    """Fingerprint of the last Capacity Short sent for it, so that the same shortfall is told once."""
    late: bool = False
    """It was not Ready when it started, and that was counted."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """N pods of one shape that come to one pool between `starts_at` and `ends_at`."""

    reference: str
    pool: str
    pods: int
    pod: Resources
    starts_at: float
    ends_at: float
    signalled_at: float
    """The envelope's time."""
    received_at: float
    """When we first saw the signal."""
    portal: str
    revision: int | None = None
    event_ids: tuple[str, ...] = ()
    """Events of this reference that were taken with this same envelope time, which has whole seconds."""
    cancelled_at: float = 0.0
    """The envelope's time of the cancellation."""
    progress: Progress = Progress()
    version: int = 0
    """Counts writes of the stored item; every write is conditional on the version that was read."""

    def phase(self, now: float, lead_seconds: float) -> Phase:
        """Where the reservation stands at `now`, in a pool whose nodes need `lead_seconds` to be Ready."""
        if self.cancelled_at:
            return Phase.CANCELLED
        if now >= self.ends_at:
            return Phase.ENDED
        return Phase.LIVE if now >= self.starts_at - lead_seconds else Phase.FUTURE

    def open_at(self, now: float) -> bool:
        """Whether it can still ask for capacity, now or later."""
        return not self.cancelled_at and now < self.ends_at

    def in_place_of(self, earlier: Reservation) -> Reservation:
        """A correction keeps since when nodes have been on their way for its reference, and which events it followed
        within the second."""
        same_second = earlier.event_ids if earlier.signalled_at == self.signalled_at else ()
        kept = earlier.pool == self.pool and not earlier.cancelled_at
        asked_at = earlier.progress.asked_at if kept else self.progress.asked_at
        return replace(
            self,
            event_ids=(*same_second, *self.event_ids),
            progress=replace(self.progress, asked_at=asked_at),
        )

    @property
    def forget_at(self) -> float:
        return self.ends_at + REMEMBERED_SECONDS


def supersedes(new: Reservation, old: Reservation) -> bool:
    """Whether `new` replaces `old` under the same reference: a higher revision, else a later envelope time.

    Revisions are compared only where both carry one; equal is not newer. Envelope times have whole seconds: within one,
    an event that was not taken yet is newer, and one that was is the same signal, delivered again.
    What was cancelled comes back only by a signal that was sent after the cancellation, whatever its revision.
    """
    if old.cancelled_at:
        return new.signalled_at > old.cancelled_at
    if new.revision is not None and old.revision is not None:
        return new.revision > old.revision
    if new.signalled_at == old.signalled_at:
        return not set(new.event_ids) <= set(old.event_ids)
    return new.signalled_at > old.signalled_at


def cancel(stored: Reservation | None, reference: str, portal: str, sent_at: float) -> Reservation | None:
    """The reservation as a cancellation leaves it; None where the cancellation is older than what is stored.

    A cancellation may overtake its signal: then a reservation of no pods stands in, so that the signal finds it.
    """
    if stored is None:
        return Reservation(
            reference=reference,
            pool="",
            pods=0,
            pod=Resources(),
            starts_at=sent_at,
            ends_at=sent_at,
            signalled_at=sent_at,
            received_at=sent_at,
            portal=portal,
            cancelled_at=sent_at,
        )
    if stored.cancelled_at or sent_at < stored.signalled_at:
        return None
    return replace(stored, cancelled_at=sent_at)


def promised_pods(reservations: Iterable[Reservation], portal: str, now: float, *, besides: str) -> int:
    """Pods of every open reservation of `portal`, the one under reference `besides` left out."""
    return sum(r.pods for r in reservations if r.portal == portal and r.reference != besides and r.open_at(now))


def oldest_first(reservations: Iterable[Reservation]) -> list[Reservation]:
    """The order in which pods without a reference fill reservations: by start, then by when they were signalled."""
    return sorted(reservations, key=lambda r: (r.starts_at, r.signalled_at, r.reference))
