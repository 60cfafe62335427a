"""What is remembered of a pool between runs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstbell.capacity.failures import LaunchFailure, Reason
from firstbell.capacity.pool_state import DEFAULT_LEAD_SECONDS, PoolState, state_from_document
from tests.unit.capacity.sizes import NOW


def failure(at: float) -> LaunchFailure:
    return LaunchFailure(Reason.INSUFFICIENT_CAPACITY, "no capacity", at)


def test_the_back_off_doubles_from_five_minutes_to_thirty_with_each_try_that_fails() -> None:
    state, at, pauses = PoolState(), NOW, []
    for _ in range(5):
        state = state.failed(failure(at))
        pauses.append(state.backoff_until - at)
        at = state.backoff_until
    assert pauses == [300, 600, 1200, 1800, 1800]


def test_failures_of_one_burst_back_off_once_and_the_last_words_stand() -> None:
    state = PoolState().failed(failure(NOW))
    again = state.failed(LaunchFailure(Reason.SPOT_PRICE, "too low", NOW + 7))
    assert (again.backoff_until, again.failure_reason) == (NOW + 300, "spot-price")
    assert again.failed(failure(NOW + 3)) == again, "told before"


def test_a_success_ends_the_back_off_and_the_next_begins_at_five_minutes() -> None:
    state = PoolState().failed(failure(NOW)).failed(failure(NOW + 400)).recovered()
    assert not state.backs_off(NOW + 401)
    assert state.failed(failure(NOW + 500)).backoff_until == NOW + 800


def test_a_known_failure_is_not_counted_again_after_a_recovery() -> None:
    state = PoolState().failed(failure(NOW)).recovered()
    assert not state.failed(failure(NOW)).backs_off(NOW + 1)


def test_three_undos_within_a_quarter_of_an_hour_are_a_contest() -> None:
    state = PoolState().undone(NOW - 901).undone(NOW - 600).undone(NOW - 300)
    assert not state.contested(NOW)
    assert state.undone(NOW).contested(NOW)


@pytest.mark.parametrize(
    ("measured", "lead"), [([], DEFAULT_LEAD_SECONDS), ([100.0], 110), ([*range(1, 21)], 19 * 1.1), ([60.0] * 50, 66)]
)
def test_an_automatic_lead_is_the_p95_and_a_tenth(measured: list[float], lead: float) -> None:
    state = PoolState()
    for seconds in measured:
        state = state.measured(seconds)
    assert state.lead_seconds(None) == pytest.approx(lead)
    assert state.lead_seconds(7) == 420


@given(st.lists(st.floats(1, 3600), min_size=1, max_size=80))
def test_an_automatic_lead_covers_nineteen_of_twenty_of_the_latest(measured: list[float]) -> None:
    state = PoolState()
    for seconds in measured:
        state = state.measured(seconds)
    latest = measured[-50:]
    assert sum(seconds <= state.lead_seconds(None) for seconds in latest) >= 0.95 * len(latest)


def test_members_are_dated_when_first_seen_and_forgotten_when_gone() -> None:
    state = PoolState().observed(["i-1"], 0, NOW).observed(["i-1", "i-2"], 0, NOW + 60, usable_ids=["i-1", "i-9"])
    assert state.first_seen == {"i-1": NOW, "i-2": NOW + 60}
    assert state.served == ("i-1",)
    gone = state.observed(["i-2"], 0, NOW + 120)
    assert (gone.first_seen, gone.served) == ({"i-2": NOW + 60}, ())


def test_nothing_was_launched_counts_from_the_last_launch() -> None:
    """An instance refresh leaves units unlaunched at each look, and yet launches."""
    asked = PoolState().observed(["i-1"], 2, NOW)
    assert asked.observed(["i-1"], 2, NOW + 300).unlaunched_since == NOW
    assert asked.observed(["i-1", "i-2"], 1, NOW + 300).unlaunched_since == NOW + 300
    assert asked.observed(["i-1"], 0, NOW + 300).unlaunched_since == 0


def test_a_state_comes_back_from_json_as_it_was() -> None:
    state = PoolState(
        first_seen={"i-1": NOW},
        served=("i-1",),
        wrote=(1, 3, NOW),
        undos=(NOW,),
        overflow={"spare": {"bio101": 3}},
        ready_seconds=(61.5,),
    )
    assert state_from_document(json.loads(json.dumps(state.as_document()))) == state


def test_what_a_newer_version_wrote_is_read_as_far_as_it_is_known() -> None:
    assert state_from_document({"wanted": 3, "not_known_yet": True}) == PoolState(wanted=3)
