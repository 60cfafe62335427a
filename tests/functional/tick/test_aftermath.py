"""What interruptions leave to tick: the real tick over fakes, with nothing reserved."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from firstbell.capacity.changes import Change
from firstbell.capacity.drains import Drain, Phase
from firstbell.capacity.groups import Member
from firstbell.cloud.drain_ledger import Detached, Held
from firstbell.cluster.cordons import CordonMark, MarkReason, mark_of
from firstbell.errors import AccessDenied, Conflict, RetryLater
from firstbell.interruption.intake import read_batch
from firstbell.interruption.notices import Interruption, Kind
from tests.fakes import Crash
from tests.fakes.school import EIGHT, MINUTE, PLACES, School, pool

if TYPE_CHECKING:
    from firstbell.capacity.cluster_view import Node

ARN = "arn:aws:health:us-west-2::event/EC2/AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED/1"
STARTS_AT = EIGHT + 3600
HELD_BACK, SURVIVOR = "i-0a", "i-0b"


def school(**options: Any) -> School:
    """i-0a is a member that was held back until eight; i-0b was detached at a quarter to; it is 08:01."""
    made = School(pools=(pool(**options), pool("dask")), now=EIGHT + MINUTE)
    made.change_group(desired=1, members=(Member(HELD_BACK, "InService", "m5.xlarge", "us-west-2a"),))
    made.join([HELD_BACK, SURVIVOR])
    return made


def hold_back(at: School, kind: str = "rebalance", reason: MarkReason = "interruption") -> None:
    node = node_of(at)
    at.cluster.cordon(node, CordonMark(reason, kind, EIGHT - 30 * MINUTE))
    at.drain_ledger.held_by_id[HELD_BACK] = Held(HELD_BACK, node.name, "notebook", EIGHT)


def detach(at: School, since: float = EIGHT - 15 * MINUTE) -> None:
    at.drain_ledger.detached_by_id[SURVIVOR] = Detached(SURVIVOR, "notebook", "asg-notebook", since)


def drain(at: School, instance_id: str, phase: Phase = Phase.DRAINING, deadline: float = EIGHT) -> None:
    next_at = 0.0 if phase is Phase.DONE else at.now + MINUTE
    at.drain_ledger.write(Drain(instance_id, "spot", EIGHT, "notebook", deadline, phase=phase, next_at=next_at), EIGHT)


def announce(at: School, **changes: object) -> None:
    change = Change(ARN, STARTS_AT, EIGHT - 3600, "c-1", {"notebook": [HELD_BACK]})
    at.drain_ledger.store_change(replace(change, **changes))  # type: ignore[arg-type]


def node_of(at: School) -> Node:
    return at.cluster.node_by_name[f"node-{HELD_BACK}"]


def notices(at: School) -> list[Interruption]:
    """What the drainer reads of the messages in the queue."""
    asked = read_batch(at.queue.receive(), at.pools).asked
    return [one.notice for one in asked if isinstance(one.notice, Interruption)]


def writes(at: School) -> set[str]:
    writing = {"send", "write_change", "uncordon", "forget_held", "terminate", "forget_detached", "write"}
    return {call.name for call in at.faults.calls} & writing


# scheduled changes


def test_a_change_is_enqueued_before_minutes_ahead_of_its_start_and_once() -> None:
    at = school()
    announce(at)
    at.now = STARTS_AT - 61 * MINUTE
    at.tick()
    assert at.queue.messages == []
    for _ in range(3):
        at.minutes(1)
        at.tick()
    [notice] = notices(at)
    assert (notice.kind, notice.instance_ids, notice.deadline) == (Kind.SCHEDULED_CHANGE, (HELD_BACK,), STARTS_AT)


def test_a_change_of_two_pools_is_enqueued_for_each() -> None:
    at = school()
    announce(at, instances={"notebook": [HELD_BACK], "dask": ["i-0c"]})
    at.tick()
    at.tick()
    assert [notice.instance_ids for notice in notices(at)] == [(HELD_BACK,), ("i-0c",)]


def test_a_change_that_is_put_off_is_enqueued_for_its_new_start_too() -> None:
    at = school()
    announce(at)
    at.tick()
    announce(at, communication="c-2", updated_at=EIGHT, starts_at=STARTS_AT + 24 * 3600)
    at.tick()
    assert len(at.queue.messages) == 1
    at.now += 24 * 3600
    at.tick()
    assert len({json.loads(message.body)["id"] for message in at.queue.messages}) == 2


def test_an_update_during_the_enqueueing_is_no_error_and_is_seen_next_minute() -> None:
    at = school()
    announce(at)
    at.faults.fail("write_change", Conflict("announced anew"))
    at.tick()
    at.tick()
    bodies = [json.loads(message.body) for message in at.queue.messages]
    assert len(bodies) == 2
    assert len({body["id"] for body in bodies}) == 1, "the same event, which counts once"


def test_a_pool_that_only_observes_is_told_what_would_be_drained() -> None:
    at = school(mode="observe")
    announce(at)
    at.tick()
    assert len(notices(at)) == 1


# nodes that were held back


@pytest.mark.parametrize("kind", ["rebalance", "drill"])
def test_a_node_is_given_back_when_nothing_followed(kind: str) -> None:
    at = school()
    before = node_of(at)
    hold_back(at, kind)
    at.tick()
    after = node_of(at)
    assert replace(after, resource_version="") == replace(before, resource_version="")
    assert at.drain_ledger.held_by_id == {}


def test_a_node_is_held_back_until_its_time() -> None:
    at = school()
    hold_back(at)
    at.now = EIGHT - 1
    at.tick()
    assert node_of(at).unschedulable
    assert HELD_BACK in at.drain_ledger.held_by_id


def test_a_node_whose_drain_is_under_way_is_not_given_back_before_it_is_over() -> None:
    at = school()
    hold_back(at)
    drain(at, HELD_BACK, deadline=EIGHT + 10 * MINUTE)
    at.tick()
    assert node_of(at).unschedulable
    at.drain_ledger.update(HELD_BACK, lambda stored: replace(stored, phase=Phase.DONE), at.now)
    at.tick()
    assert not node_of(at).unschedulable


def test_a_drain_that_lost_its_messages_holds_no_node_for_ever() -> None:
    at = school()
    hold_back(at)
    drain(at, HELD_BACK, deadline=EIGHT + 10 * MINUTE)
    at.minutes(5)
    at.tick()
    assert node_of(at).unschedulable, "it has time left, and its messages may only be late"
    at.minutes(6)
    at.tick()
    assert not node_of(at).unschedulable


def test_a_node_that_something_takes_away_after_all_stays_as_it_is() -> None:
    at = school()
    hold_back(at, "spot")
    drain(at, HELD_BACK, Phase.DONE)
    at.tick()
    assert node_of(at).unschedulable
    assert at.drain_ledger.held_by_id == {}


def test_a_cordon_of_somebody_else_or_of_idle_outlives_ours() -> None:
    at = school()
    at.cluster.add_node(replace(node_of(at), unschedulable=True))
    hold_back(at)
    at.tick()
    assert node_of(at).unschedulable
    assert mark_of(node_of(at), "interruption") is None


def test_a_node_that_is_gone_is_forgotten() -> None:
    at = school()
    hold_back(at)
    at.cluster.remove_node(f"node-{HELD_BACK}")
    at.tick()
    assert at.drain_ledger.held_by_id == {}


def test_a_node_of_the_same_name_and_another_instance_is_left_alone() -> None:
    """case 10: nodes are known by their instances."""
    at = school()
    hold_back(at)
    at.cluster.add_node(replace(node_of(at), instance_id="i-0new"))
    at.tick()
    assert node_of(at).unschedulable
    assert at.drain_ledger.held_by_id == {}


def test_a_cordon_that_conflicts_is_read_again_next_minute() -> None:
    """case 26"""
    at = school()
    hold_back(at)
    at.faults.fail("uncordon", Conflict("409"))
    at.tick()
    assert node_of(at).unschedulable
    at.tick()
    assert not node_of(at).unschedulable


# instances that were detached


def test_a_survivor_is_ended_once_its_drain_is_done() -> None:
    at = school()
    detach(at)
    drain(at, SURVIVOR, deadline=at.now + MINUTE)
    at.tick()
    assert at.instances.ended == []
    at.drain_ledger.update(SURVIVOR, lambda stored: replace(stored, phase=Phase.DONE), at.now)
    at.tick()
    at.tick()
    assert at.instances.ended == [SURVIVOR]


@pytest.mark.parametrize("lost", [False, True])
def test_a_survivor_is_ended_when_its_time_is_over_however_far_its_drain_came(lost: bool) -> None:
    at = school()
    detach(at, since=at.now - 30)
    if not lost:
        drain(at, SURVIVOR, deadline=at.now + 90)
    at.tick()
    assert at.instances.ended == []
    at.minutes(2)
    at.tick()
    assert at.instances.ended == [SURVIVOR]


def test_what_spot_took_is_forgotten() -> None:
    at = school()
    detach(at)
    at.instances.unknown.add(SURVIVOR)
    at.tick()
    assert at.drain_ledger.detached_by_id == {}


def test_one_that_was_never_detached_is_a_member_still_and_only_forgotten() -> None:
    at = school()
    detach(at)
    at.change_group(members=(Member(SURVIVOR, "InService", "m5.xlarge", "us-west-2a"),))
    at.tick()
    assert (at.instances.ended, at.drain_ledger.detached_by_id) == ([], {})


@pytest.mark.parametrize(("lifecycle", "seconds_ago"), [("InService", 30), ("Detaching", 900)])
def test_one_that_is_about_to_be_detached_is_not_forgotten_yet(lifecycle: str, seconds_ago: float) -> None:
    at = school()
    detach(at, since=at.now - seconds_ago)
    drain(at, SURVIVOR, Phase.DONE)
    at.change_group(members=(Member(SURVIVOR, lifecycle, "m5.xlarge", "us-west-2a"),))
    at.tick()
    assert (at.instances.ended, list(at.drain_ledger.detached_by_id)) == ([], [SURVIVOR])


def test_nothing_is_ended_while_its_group_cannot_be_read() -> None:
    at = school()
    detach(at)
    at.faults.fail("describe", RetryLater("Throttling"))
    with pytest.raises(RetryLater):
        at.tick()
    assert at.instances.ended == []
    at.tick()
    assert at.instances.ended == [SURVIVOR]


# all of it


def everything(**options: Any) -> School:
    at = school(**options)
    announce(at)
    hold_back(at)
    detach(at)
    at.faults.calls.clear()
    return at


def test_during_a_pause_nothing_is_written_and_afterwards_all_of_it() -> None:
    at = everything()
    at.ledger.paused = True
    at.tick()
    assert not writes(at)
    at.ledger.paused = False
    at.tick()
    assert (len(at.queue.messages), node_of(at).unschedulable, at.instances.ended) == (1, False, [SURVIVOR])


def test_a_pool_that_only_observes_keeps_its_nodes_and_instances_as_they_are() -> None:
    at = everything(mode="observe")
    at.tick()
    assert writes(at) == {"send", "write_change"}


def test_what_was_done_to_a_pool_that_is_no_longer_listed_is_undone() -> None:
    at = everything()
    at.settings = replace(at.settings, pools=at.pools[1:])
    at.tick()
    assert (node_of(at).unschedulable, at.instances.ended) == (False, [SURVIVOR])


@pytest.mark.parametrize("call", ["remembered", "send", "read", "node", "uncordon", "terminate"])
def test_what_fails_keeps_neither_pools_nor_the_rest_from_their_turn(call: str) -> None:
    at = everything()
    at.deliver(at.signal(PLACES))
    at.grow()
    at.faults.calls.clear()
    at.telemetry.values.clear()
    at.faults.fail(call, AccessDenied("403"))
    with pytest.raises(AccessDenied):
        at.tick()
    assert at.said("Capacity Ready")
    assert at.telemetry.total("TickRuns") == 1
    done = [len(at.queue.messages) == 1, not node_of(at).unschedulable, at.instances.ended == [SURVIVOR]]
    assert sum(done) == {"remembered": 0, "read": 1}.get(call, 2)
    at.tick()
    assert (len(at.queue.messages), node_of(at).unschedulable, at.instances.ended) == (1, False, [SURVIVOR])


@pytest.mark.parametrize("after_effect", [False, True])
def test_a_run_that_is_killed_at_any_call_loses_nothing(after_effect: bool) -> None:
    kills = 0
    for nth in itertools.count(1):
        at = everything()
        at.faults.fail("*", Crash(), nth=nth, after_effect=after_effect)
        try:
            at.tick()
        except Crash:
            kills += 1
        else:
            break
        at.faults.clear()
        at.tick()
        at.tick()
        assert len({json.loads(message.body)["id"] for message in at.queue.messages}) == 1
        assert not node_of(at).unschedulable
        assert set(at.instances.ended) == {SURVIVOR}
        remembered = at.drain_ledger.remembered()
        assert (remembered.held, remembered.detached) == ([], [])
        at.faults.calls.clear()
        at.tick()
        assert not writes(at)
    assert kills > 10
