"""One drain an instance, whatever arrives: at least once, out of order, at the same time (case 8)."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstbell.capacity.claims import (
    CLAIM_SECONDS,
    COME_BACK_SECONDS,
    Claimed,
    Early,
    Merged,
    Stale,
    begin_or_merge,
    resume,
)
from firstbell.capacity.drains import (
    OVERDUE_SECONDS,
    Drain,
    Hook,
    News,
    Phase,
    drain_as_document,
    drain_from_document,
    finished,
    merge,
    released,
)

T = 1_796_112_300.0
HOOK = Hook("notebook-a", "firstbell-drain", "t1", heartbeat_seconds=300, beaten_at=T)


def news(kind: str = "spot", event: str = "e1", **changes: Any) -> News:
    fields: dict[str, Any] = {"event_time": T, "deadline": T + 120 if kind == "spot" else T + 3600, "pool": "notebooks"}
    return News(instance_id="i-0aa", kind=kind, event_id=event, **{**fields, **changes})


def claimed(decision: object) -> Drain:
    assert isinstance(decision, Claimed), decision
    return decision.drain


def merged(decision: object) -> Merged:
    assert isinstance(decision, Merged), decision
    return decision


def begun(**changes: Any) -> Drain:
    return claimed(begin_or_merge(None, news(**changes), "m1", T))


def waiting(**changes: Any) -> Drain:
    """A drain between its first and its second pass."""
    return released(begun(**changes), next_at=T + 3)


def test_the_first_notice_claims_the_first_pass() -> None:
    drain = begun()
    assert (drain.number, drain.holder, drain.claimed_until) == (1, "m1", T + CLAIM_SECONDS)
    assert (drain.kinds, drain.deadline) == (("spot",), T + 120)


def test_a_second_notice_during_a_pass_only_adds_what_it_says() -> None:
    """Case 8: rebalance, then Spot: one drain; the later event only tightens the deadline."""
    first = begun(kind="rebalance", deadline=T + 3600)
    decision = merged(begin_or_merge(first, news(event="e2"), "m2", T + 1))
    assert decision.drain.holder == "m1"
    assert decision.drain.kinds == ("rebalance", "spot")
    assert decision.drain.deadline == T + 120
    assert decision.nudge_seconds == COME_BACK_SECONDS


def test_a_later_deadline_never_loosens_an_earlier_one() -> None:
    decision = merged(begin_or_merge(waiting(), news("scheduled-change", "e2", deadline=T + 9000), "m2", T + 1))
    assert decision.drain.deadline == T + 120
    assert decision.nudge_seconds is None


def test_the_same_event_again_changes_nothing() -> None:
    """Case 8: the same EventBridge id twice."""
    drain = begun()
    assert merged(begin_or_merge(drain, news(), "m2", T + 1)) == Merged(drain, changed=False)


def test_a_tighter_deadline_wakes_a_drain_whose_next_pass_is_late() -> None:
    slow = released(begun(kind="lifecycle", hook=HOOK, deadline=T + 3600), next_at=T + 60)
    assert merged(begin_or_merge(slow, news(event="e2"), "m2", T + 1)).nudge_seconds == 0
    soon = replace(slow, next_at=T + 1.5)
    assert merged(begin_or_merge(soon, news(event="e2"), "m2", T + 1)).nudge_seconds is None


def test_a_redelivered_notice_resumes_its_own_pass() -> None:
    drain = begun()
    again = claimed(begin_or_merge(drain, news(), "m1", T + 21))
    assert (again.number, again.claimed_until) == (1, T + 21 + CLAIM_SECONDS)


def test_a_notice_whose_pass_is_over_is_acknowledged() -> None:
    drain = waiting()
    assert merged(begin_or_merge(drain, news(), "m1", T + 21)) == Merged(drain, changed=False)


def test_a_continuation_claims_the_pass_that_it_asks_for() -> None:
    assert claimed(resume(waiting(), 2, "c2", T + 3)).holder == "c2"


def test_a_stale_continuation_is_acknowledged() -> None:
    drain = waiting()
    assert resume(drain, 1, "c1", T + 3) == Stale()
    assert resume(finished(drain), 9, "c9", T + 3) == Stale()


def test_only_the_same_message_or_an_expired_claim_may_reclaim() -> None:
    held = claimed(resume(waiting(), 2, "c2", T + 3))
    assert resume(held, 2, "other", T + 4) == Stale()
    assert claimed(resume(held, 2, "c2", T + 4)).holder == "c2"
    assert claimed(resume(held, 2, "other", T + 3 + CLAIM_SECONDS)).holder == "other"


def test_a_continuation_that_comes_before_its_pass_is_free_comes_back() -> None:
    """Its sender was killed between sending it and giving the pass back."""
    held = begun()
    assert resume(held, 2, "c2", T + 3) == Early()
    assert claimed(resume(held, 2, "c2", T + CLAIM_SECONDS)).number == 2


def test_an_orphaned_drain_is_carried_on_by_whatever_comes_next() -> None:
    lost = waiting()
    late = lost.next_at + OVERDUE_SECONDS + 1
    assert claimed(begin_or_merge(lost, news(event="e9"), "m9", late)).holder == "m9"


def test_something_new_after_the_end_looks_again_with_its_own_deadline() -> None:
    """An hour apart: the hook's event after a Spot drain that is over."""
    done = finished(replace(waiting(), announced=True, evicted=7))
    late = news("lifecycle", "e2", hook=HOOK, event_time=T + 3600, deadline=T + 7200)
    again = claimed(begin_or_merge(done, late, "m2", T + 3600))
    assert (again.phase, again.number, again.deadline) == (Phase.DRAINING, 3, T + 7200)
    assert (again.announced, again.evicted, again.hooks) == (True, 0, (HOOK,))
    assert again.noticed_at == T + 3600


def test_a_duplicate_after_the_end_is_acknowledged() -> None:
    done = finished(waiting())
    assert merged(begin_or_merge(done, news(), "m7", T + 3600)) == Merged(done, changed=False)


def test_one_lifecycle_action_is_kept_once_flat_or_not() -> None:
    drain = begun(kind="lifecycle", hook=HOOK)
    twice = merged(begin_or_merge(drain, news("lifecycle", "e2", hook=replace(HOOK, beaten_at=T + 1)), "m2", T + 1))
    assert twice.drain.hooks == (HOOK,)


def test_a_completed_action_stays_completed_when_its_event_comes_again() -> None:
    done = replace(HOOK, completed=True)
    drain = replace(begun(kind="lifecycle", hook=HOOK), hooks=(done,))
    assert merge(drain, news("lifecycle", "e2", hook=HOOK)).hooks == (done,)
    other = replace(HOOK, token="t2")
    assert merge(drain, news("lifecycle", "e3", hook=other)).hooks == (other,)


def test_a_real_event_takes_a_drill_over() -> None:
    drill = begun(drill=True)
    real = merge(drill, news("lifecycle", "e2", hook=HOOK, deadline=T + 3600))
    assert (real.drill, real.kinds, real.deadline, real.holder) == (False, ("lifecycle",), T + 3600, "m1")


def test_a_drill_adds_nothing_to_a_real_drain_but_may_follow_one() -> None:
    drain = begun()
    assert merge(drain, news(event="d1", drill=True, deadline=T + 1)) == drain
    assert claimed(begin_or_merge(finished(drain), news(event="d1", drill=True), "m2", T + 9000)).drill


def test_a_drain_is_read_back_as_it_was_written() -> None:
    drain = replace(begun(kind="lifecycle", hook=HOOK), forced=("class/nb-1",), retry_at={"u1": T + 60})
    document = drain_as_document(drain)
    assert drain_from_document(document) == drain
    assert drain_from_document({**document, "from_a_later_version": 1}) == drain


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_overlapping_events_end_in_one_state_whatever_their_order(order: tuple[int, ...]) -> None:
    """Case 8: rebalance + Spot + state-change + lifecycle for one instance."""
    events = (
        news("rebalance", "e1", deadline=T + 3600),
        news("spot", "e2"),
        news("state-change", "e3", deadline=T + 100, state="shutting-down"),
        news("lifecycle", "e4", hook=HOOK, deadline=T + 7200),
    )
    first, *rest = (events[index] for index in order)
    drain = claimed(begin_or_merge(None, first, "m0", T))
    for index, event in enumerate(rest):
        drain = merged(begin_or_merge(drain, event, f"m{index + 1}", T)).drain
    assert (drain.deadline, drain.state, drain.hooks, drain.holder) == (T + 100, "shutting-down", (HOOK,), "m0")
    assert sorted(drain.kinds) == ["lifecycle", "rebalance", "spot", "state-change"]


@given(st.lists(st.floats(T, T + 10_000), min_size=1, max_size=8))
def test_the_deadline_is_the_tightest_that_was_heard(deadlines: list[float]) -> None:
    drain = begun(deadline=deadlines[0])
    for index, deadline in enumerate(deadlines[1:]):
        drain = merge(drain, news(event=f"x{index}", deadline=deadline))
    assert drain.deadline == min(deadlines)
