"""The drain ledger on DynamoDB."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from firstbell.capacity.changes import Change, due, enqueued
from firstbell.capacity.drains import Drain, Hook
from firstbell.capacity.pools import Pool
from firstbell.capacity.resources import Resources
from firstbell.cloud.drain_ledger import Detached, DrainLedger, Held
from firstbell.cloud.session import Clients
from firstbell.errors import Conflict, NotFound

T = 1_796_112_300.0
HOOK = Hook("notebook-a", "firstbell-drain", "t1", 300, T)


@pytest.fixture
def ledger(aws: Clients, table: str) -> DrainLedger:
    return DrainLedger(aws, table, "hub")


def drain(instance_id: str = "i-0aa") -> Drain:
    return Drain(
        instance_id=instance_id, kind="spot", noticed_at=T, pool="notebooks", deadline=T + 120.5, hooks=(HOOK,)
    )


def test_a_drain_is_read_back_as_it_was_written(ledger: DrainLedger) -> None:
    stored = ledger.write(drain(), T)
    assert ledger.read(["i-0aa", "i-0bb"]).drains == {"i-0aa": stored}
    assert stored == replace(drain(), version=1)


def test_a_drain_is_begun_once(ledger: DrainLedger) -> None:
    """Case 8: of two invocations that see a notice at the same time, one begins the drain."""
    ledger.write(drain(), T)
    with pytest.raises(Conflict):
        ledger.write(drain(), T)


def test_a_write_on_an_old_reading_is_refused(ledger: DrainLedger) -> None:
    first = ledger.write(drain(), T)
    ledger.write(replace(first, evicted=1), T)
    with pytest.raises(Conflict):
        ledger.write(replace(first, evicted=2), T)


def test_concurrent_updates_are_all_kept(ledger: DrainLedger) -> None:
    ledger.write(drain(), T)
    with ThreadPoolExecutor(3) as threads:
        for _ in threads.map(
            lambda _: ledger.update("i-0aa", lambda d: replace(d, evicted=d.evicted + 1), T), range(3)
        ):
            pass
    assert ledger.read(["i-0aa"]).drains["i-0aa"].evicted == 3


def test_updating_what_the_ledger_lost_says_so(ledger: DrainLedger) -> None:
    with pytest.raises(NotFound):
        ledger.update("i-0aa", lambda d: d, T)


def test_more_drains_than_one_call_takes_are_all_read(ledger: DrainLedger) -> None:
    ids = [f"i-{number:04x}" for number in range(130)]
    for instance_id in ids:
        ledger.write(drain(instance_id), T)
    assert sorted(ledger.read(ids).drains) == ids


def test_a_pause_is_read_along(ledger: DrainLedger, aws: Clients, table: str) -> None:
    assert not ledger.read(["i-0aa"]).paused
    aws.dynamodb.put_item(TableName=table, Item={"pk": {"S": "CLUSTER#hub"}, "sk": {"S": "PAUSE"}})
    assert ledger.read(["i-0aa"]).paused


def test_drains_expire_after_the_longest_hook(ledger: DrainLedger, aws: Clients, table: str) -> None:
    ledger.write(drain(), T)
    item = aws.dynamodb.get_item(TableName=table, Key={"pk": {"S": "DRAIN#i-0aa"}, "sk": {"S": "DRAIN"}})["Item"]
    assert int(item["expires_at"]["N"]) > T + 48 * 3600


def change(**changes: object) -> Change:
    return replace(
        Change("arn:aws:health:made-up", T + 7200, T, "c-1", {"notebooks": ["i-0aa"]}),
        **changes,  # type: ignore[arg-type]
    )


def test_an_announcement_is_stored_and_its_update_replaces_it(ledger: DrainLedger) -> None:
    ledger.store_change(change())
    ledger.store_change(change(communication="c-2", updated_at=T + 1, instances={"notebooks": ["i-0bb"]}))
    ledger.store_change(change(communication="c-0", updated_at=T - 1, instances={"notebooks": ["i-0cc"]}))
    [stored] = ledger.remembered().changes
    assert stored.instances == {"notebooks": ["i-0bb"]}


def test_the_pages_of_an_announcement_add_up(ledger: DrainLedger) -> None:
    ledger.store_change(change())
    ledger.store_change(change(instances={"notebooks": ["i-0bb"], "dask": ["i-0cc"]}))
    [stored] = ledger.remembered().changes
    assert stored.instances == {"dask": ["i-0cc"], "notebooks": ["i-0aa", "i-0bb"]}


def test_a_due_change_is_enqueued_once(ledger: DrainLedger) -> None:
    pool = Pool("notebooks", Resources(pods=1), group="notebook-a")
    ledger.store_change(change())
    [found] = due(ledger.remembered().changes, [pool], T + 3600)
    ledger.write_change(enqueued(found.change, found.pool))
    assert due(ledger.remembered().changes, [pool], T + 3600) == []


def test_a_withdrawn_change_stays_withdrawn(ledger: DrainLedger) -> None:
    """Its earlier announcement may be delivered after the withdrawal."""
    ledger.store_change(change(communication="c-2", updated_at=T + 1, instances={}))
    ledger.store_change(change())
    [stored] = ledger.remembered().changes
    assert stored.instances == {}


def test_detached_instances_are_remembered_until_they_are_ended(ledger: DrainLedger) -> None:
    ones = [Detached("i-0aa", "dask", "dask-a", T), Detached("i-0bb", "dask", "dask-a", T)]
    ledger.remember_detached(ones)
    ledger.remember_detached(ones)
    assert ledger.remembered().detached == ones
    ledger.forget_detached("i-0aa")
    assert ledger.remembered().detached == ones[1:]


def test_a_held_node_is_remembered_until_it_is_given_back(ledger: DrainLedger) -> None:
    ledger.remember_held(Held("i-0aa", "n1", "dask", T))
    ledger.remember_held(Held("i-0aa", "n1", "dask", T + 60))
    assert ledger.remembered().held == [Held("i-0aa", "n1", "dask", T + 60)]
    ledger.forget_held(Held("i-0aa", "n1", "dask", T))
    assert ledger.remembered().held, "the wait began anew"
    ledger.forget_held(Held("i-0aa", "n1", "dask", T + 60))
    ledger.forget_held(Held("i-0aa", "n1", "dask", T + 60))
    assert ledger.remembered().held == []
