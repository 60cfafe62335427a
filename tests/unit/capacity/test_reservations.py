"""What a demand signal leaves behind, in whatever order signals arrive."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstbell.capacity.reservations import (
    Phase,
    Progress,
    Reservation,
    cancel,
    oldest_first,
    promised_pods,
    supersedes,
)
from tests.unit.capacity.sizes import NOW, reservation


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        ((None, 0), (None, 1), True),
        ((None, 1), (None, 0), False),
        ((None, 0), (None, 0), False),
        ((1, 0), (2, 0), True),
        ((2, 0), (1, 9), False),
        ((2, 9), (3, 0), True),
        ((2, 0), (2, 9), False),
        ((2, 0), (None, 9), True),
        ((None, 9), (2, 0), False),
    ],
)
def test_newer_is_by_revision_where_both_have_one_else_by_time(
    old: tuple[int | None, float], new: tuple[int | None, float], replaces: bool
) -> None:
    earlier, later = (reservation(revision=revision, signalled_at=NOW + at) for revision, at in (old, new))
    assert supersedes(later, earlier) is replaces


@given(st.permutations(range(4)))
def test_corrections_end_in_the_newest_whatever_order_they_come_in(order: list[int]) -> None:
    signals = [reservation(pods=10 * n, revision=n, signalled_at=NOW + n) for n in range(1, 5)]
    stored = signals[order[0]]
    for n in order[1:]:
        stored = signals[n] if supersedes(signals[n], stored) else stored
    assert stored.pods == 40


SIGNALS = (
    reservation(revision=3, signalled_at=NOW),
    "cancelled",
    reservation(revision=4, pods=40, signalled_at=NOW + 20),
)


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
@pytest.mark.parametrize("duplicate", range(3))
def test_a_cancellation_holds_against_every_signal_sent_before_it(order: tuple[int, ...], duplicate: int) -> None:
    """Signal (revision 3), cancellation, a new signal under the same reference (revision 4); one comes twice."""
    stored: Reservation | None = None
    for n in (*order, duplicate):
        arriving = SIGNALS[n]
        if isinstance(arriving, Reservation):
            stored = replace_if_newer(stored, arriving)
        else:
            stored = cancel(stored, "bio101", "teachers", NOW + 10) or stored
    assert stored is not None
    assert (stored.pods, stored.cancelled_at) == (40, 0)


def replace_if_newer(stored: Reservation | None, arriving: Reservation) -> Reservation:
    if stored is None:
        return arriving
    return arriving.in_place_of(stored) if supersedes(arriving, stored) else stored


def test_a_correction_keeps_since_when_nodes_are_on_their_way() -> None:
    asked = reservation(progress=Progress(requested_at=NOW, asked_at=NOW - 60))
    correction = reservation(revision=2)
    assert correction.in_place_of(asked).progress == Progress(asked_at=NOW - 60)
    assert correction.in_place_of(replace(asked, pool="spare")).progress == Progress()
    assert correction.in_place_of(replace(asked, cancelled_at=NOW)).progress == Progress()


def test_a_cancellation_that_overtakes_its_signal_is_kept_for_it() -> None:
    kept = cancel(None, "bio101", "teachers", NOW)
    assert kept is not None
    assert (kept.pods, kept.phase(NOW, 300), kept.forget_at) == (0, Phase.CANCELLED, NOW + 24 * 3600)
    assert not supersedes(reservation(signalled_at=NOW - 5), kept)
    assert supersedes(reservation(signalled_at=NOW + 5), kept)


def test_a_cancellation_older_than_what_is_stored_changes_nothing() -> None:
    assert cancel(reservation(signalled_at=NOW), "bio101", "teachers", NOW - 1) is None
    ended = cancel(reservation(signalled_at=NOW), "bio101", "teachers", NOW)
    assert ended is not None
    assert cancel(ended, "bio101", "teachers", NOW + 5) is None


@pytest.mark.parametrize(
    ("now", "phase"),
    [(-301, Phase.FUTURE), (-300, Phase.LIVE), (0, Phase.LIVE), (3599, Phase.LIVE), (3600, Phase.ENDED)],
)
def test_a_reservation_is_live_from_its_lead_before_the_start_to_its_end(now: float, phase: Phase) -> None:
    assert reservation().phase(NOW + now, 300) is phase
    assert replace(reservation(), cancelled_at=NOW - 900).phase(NOW + now, 300) is Phase.CANCELLED


def test_a_portal_has_promised_what_is_open_of_its_own() -> None:
    stored = [
        reservation("open", 10),
        reservation("future", 20, starts_at=NOW + 9000, ends_at=NOW + 9900),
        reservation("ended", 40, ends_at=NOW - 1),
        reservation("cancelled", 80, cancelled_at=NOW - 1),
        reservation("another's", 160, portal="library"),
        reservation("itself", 320),
    ]
    assert promised_pods(stored, "teachers", NOW, besides="itself") == 30


def test_pods_fill_the_reservation_that_starts_first() -> None:
    late, early, earlier_told = (
        reservation("late", starts_at=NOW + 60),
        reservation("early", signalled_at=NOW),
        reservation("told", signalled_at=NOW - 60),
    )
    assert [r.reference for r in oldest_first([late, early, earlier_told])] == ["told", "early", "late"]
