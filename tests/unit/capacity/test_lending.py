"""What a pool that cannot launch asks of its fallback pools, and how they answer."""

from __future__ import annotations

from firstbell.capacity.lending import (
    accepted_elsewhere,
    borrowed,
    covered_elsewhere,
    lend,
    stand_in,
    unanswered,
    without,
)
from firstbell.capacity.pool_state import PoolState
from firstbell.capacity.pools import Pool
from firstbell.capacity.resources import Resources
from firstbell.capacity.sizing import Coverage
from tests.unit.capacity.sizes import NOW, reservation

SPARE = Pool(name="spare", pod=Resources(pods=1), group="asg-spare")
BACKING_OFF = PoolState(backoff_until=NOW + 60)


def coverage(arrived: int = 0, placed: int = 0, short: int = 0) -> Coverage:
    return Coverage("bio101", outstanding=placed + short, arrived=arrived, placed=placed, short=short)


def test_all_goes_to_the_first_pool_that_does_not_back_off() -> None:
    state = lend(
        PoolState(), {"bio101": 9}, [("first", BACKING_OFF), ("second", PoolState()), ("third", PoolState())], NOW
    )
    assert state.overflow == {"second": {"bio101": 9}}


def test_what_the_first_did_not_accept_is_asked_of_the_next_once_it_was_asked() -> None:
    """The first had accepted five of an earlier asking."""
    fallback = [("first", PoolState(accepted={"bio101": 5})), ("second", PoolState())]
    asked = lend(PoolState(), {"bio101": 9}, fallback, NOW)
    assert asked.overflow == {"first": {"bio101": 9}}
    assert lend(asked, {"bio101": 4}, fallback, NOW).overflow == {"first": {"bio101": 9}, "second": {"bio101": 4}}


def test_what_was_accepted_stays_where_it_is_once_the_pool_launches_again_or_the_other_backs_off() -> None:
    lent = PoolState(overflow={"spare": {"bio101": 9}})
    accepting = PoolState(accepted={"bio101": 6})
    assert lend(lent, {"bio101": 0}, [("spare", accepting)], NOW).overflow == {"spare": {"bio101": 6}}
    failing = PoolState(accepted={"bio101": 6}, backoff_until=NOW + 60)
    assert lend(lent, {"bio101": 3}, [("spare", failing)], NOW).overflow == {"spare": {"bio101": 6}}
    assert lend(lent, {"bio101": 3}, [("spare", accepting)], NOW).overflow == {"spare": {"bio101": 9}}


def test_a_reservation_that_is_over_is_no_longer_lent() -> None:
    lent = PoolState(overflow={"spare": {"bio101": 9}})
    assert lend(lent, {}, [("spare", PoolState(accepted={"bio101": 9}))], NOW).overflow == {}


def test_two_pools_that_share_a_shortfall_come_to_rest() -> None:
    """Nine pods; the first fallback pool takes five of them, the second as many as it is asked for."""
    state, first, second = PoolState(), PoolState(), PoolState()
    history = []
    for _ in range(8):
        states = {"first": first, "second": second}
        (left,) = without([reservation(pods=9)], accepted_elsewhere(state, states))
        state = lend(state, {"bio101": left.pods}, states.items(), NOW)
        asked = [state.overflow.get(name, {}).get("bio101", 0) for name in ("first", "second")]
        taken = min(asked[0], 5)
        first = stand_in(first, [coverage(placed=taken, short=asked[0] - taken)])
        second = stand_in(second, [coverage(placed=asked[1])])
        history.append(asked)
    assert history[-1] == history[-2] == [5, 4]
    assert covered_elsewhere(state, {"first": first, "second": second}) == {"bio101": 9}


def test_a_pool_stands_in_for_open_reservations_with_the_pods_that_were_passed_on() -> None:
    states = {"notebook": PoolState(overflow={"spare": {"bio101": 9, "over": 5, "unknown": 1}})}
    stored = [reservation("bio101", 30), reservation("over", 30, ends_at=NOW - 1), reservation("spare's", pool="spare")]
    assert [(r.reference, r.pods) for r in borrowed(SPARE, stored, states, NOW)] == [("bio101", 9)]


def test_a_correction_lowers_what_was_lent() -> None:
    states = {"notebook": PoolState(overflow={"spare": {"bio101": 9}})}
    assert [r.pods for r in borrowed(SPARE, [reservation("bio101", 4)], states, NOW)] == [4]


def test_how_a_pool_stands_with_what_was_passed_to_it() -> None:
    state = stand_in(PoolState(), [coverage(arrived=2, placed=3, short=4)])
    assert (state.covered, state.accepted) == ({"bio101": 5}, {"bio101": 5})


def test_what_others_see_to_counts_no_further_than_it_was_lent() -> None:
    lent = PoolState(overflow={"spare": {"bio101": 9}, "last": {"bio101": 4}, "gone": {"bio101": 1}})
    states = {
        "spare": PoolState(accepted={"bio101": 20}, covered={"bio101": 8}),
        "last": PoolState(accepted={"bio101": 1}),
    }
    assert accepted_elsewhere(lent, states) == {"bio101": 10}
    assert covered_elsewhere(lent, states) == {"bio101": 8}
    assert unanswered(lent, states) == {"bio101": 1}
