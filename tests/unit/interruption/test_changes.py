from __future__ import annotations

from dataclasses import replace

from firstbell.capacity.changes import Change, change_as_document, change_from_document, due, enqueued, updated
from firstbell.capacity.pools import InterruptionPolicy, Pool
from firstbell.capacity.resources import Resources
from firstbell.interruption.events import parse
from firstbell.interruption.notices import Interruption, Kind

T = 1_796_112_300.0
POOL = Pool("notebooks", Resources(pods=1), group="notebook-a", interruption=InterruptionPolicy(before_minutes=30))
CHANGE = Change("arn:aws:health:made-up", T + 7200, T, "c-1", {"notebooks": ["i-0aa", "i-0bb"]})


def test_a_change_is_due_before_minutes_ahead_of_its_start() -> None:
    assert due([CHANGE], [POOL], T + 7200 - 1801) == []
    assert len(due([CHANGE], [POOL], T + 7200 - 1800)) == 1


def test_a_due_change_is_the_message_that_starts_the_drain() -> None:
    [found] = due([CHANGE], [POOL], T + 7000)
    notice = parse(found.body)
    assert isinstance(notice, Interruption)
    assert (notice.kind, notice.due, notice.deadline) == (Kind.SCHEDULED_CHANGE, True, T + 7200)
    assert notice.instance_ids == ("i-0aa", "i-0bb")
    assert notice.event_id == "arn:aws:health:made-up#notebooks#1796119500"


def test_a_change_is_enqueued_once_for_each_start() -> None:
    sent = enqueued(CHANGE, "notebooks")
    assert due([sent], [POOL], T + 7000) == []
    moved = updated(sent, replace(CHANGE, communication="c-2", updated_at=T + 1, starts_at=T + 9000))
    assert len(due([moved], [POOL], T + 9000)) == 1


def test_a_change_of_an_unlisted_pool_is_nobodys() -> None:
    assert due([CHANGE], [replace(POOL, name="other")], T + 7200) == []


def test_a_late_announcement_changes_nothing() -> None:
    late = replace(CHANGE, communication="c-0", updated_at=T - 1, instances={})
    assert updated(CHANGE, late) == CHANGE


def test_a_newer_announcement_replaces_the_older_one() -> None:
    newer = replace(CHANGE, communication="c-2", updated_at=T + 1, instances={"dask": ["i-0cc"]}, starts_at=T + 1)
    merged = updated(replace(CHANGE, version=4), newer)
    assert (merged.instances, merged.starts_at, merged.version) == ({"dask": ["i-0cc"]}, T + 1, 4)


def test_a_change_is_read_back_as_it_was_written() -> None:
    document = change_as_document(enqueued(CHANGE, "notebooks"))
    assert change_from_document({**document, "from_a_later_version": 1}) == enqueued(CHANGE, "notebooks")


def test_a_page_that_comes_after_the_others_were_enqueued_is_drained_too() -> None:
    stored = replace(enqueued(CHANGE, "notebooks"), instances={"notebooks": ["i-0aa", "i-0bb"]})
    late = updated(stored, replace(CHANGE, instances={"notebooks": ["i-0cc"]}))
    assert len(due([late], [POOL], T + 7000)) == 1
