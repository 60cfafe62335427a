"""The ledger on DynamoDB (moto's), and its fake: one suite, so that the fake's conditions are the real ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from firstbell.capacity.pool_state import PoolState
from firstbell.capacity.reservations import Progress, Reservation, cancel
from firstbell.capacity.resources import Resources
from firstbell.cloud.ledger import LEASE_SECONDS, Ledger, LedgerView
from firstbell.errors import Conflict, RetryLater
from tests.fakes.ledger import FakeLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from firstbell.cloud.session import Clients

NOW = 1_796_112_000.0
TABLE = "ledger"


@pytest.fixture(params=["dynamodb", "fake"])
def ledger(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    if request.param == "fake":
        yield FakeLedger()
        return
    clients: Clients = request.getfixturevalue("clients")
    clients.dynamodb.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
    )
    yield Ledger(clients, TABLE, "hub")


def reservation(reference: str = "bio101", portal: str = "teachers", **changes: object) -> Reservation:
    made = Reservation(
        reference=reference,
        pool="notebook",
        pods=30,
        pod=Resources(cpu_millicores=500, memory_bytes=2**31, pods=1),
        starts_at=NOW,
        ends_at=NOW + 3600,
        signalled_at=NOW - 1.25,
        received_at=NOW,
        portal=portal,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_an_empty_ledger_reads_as_nothing(ledger: Ledger) -> None:
    assert ledger.read() == LedgerView()


def test_a_reservation_comes_back_as_it_was_stored(ledger: Ledger) -> None:
    stored = ledger.store(reservation(), None, ledger.read())
    assert ledger.read().reservations == (stored,)


def test_a_second_signal_of_a_portal_that_saw_the_same_ledger_is_decided_anew(ledger: Ledger) -> None:
    seen = ledger.read()
    ledger.store(reservation("bio101"), None, seen)
    with pytest.raises(Conflict):
        ledger.store(reservation("chem202"), None, seen)
    ledger.store(reservation("chem202", portal="library"), None, seen)
    ledger.store(reservation("chem303"), None, ledger.read())
    assert len(ledger.read().reservations) == 3


def test_a_correction_replaces_only_what_it_saw(ledger: Ledger) -> None:
    first = ledger.store(reservation(), None, ledger.read())
    ledger.store(reservation(pods=40), first, ledger.read())
    with pytest.raises(Conflict):
        ledger.store(reservation(pods=50), first, ledger.read())
    assert [r.pods for r in ledger.read().reservations] == [40]


def test_a_cancelled_reservation_is_remembered(ledger: Ledger) -> None:
    first = ledger.store(reservation(), None, ledger.read())
    ended = cancel(first, "bio101", "teachers", NOW + 1)
    assert ended is not None
    ledger.store(ended, first, ledger.read())
    assert [r.cancelled_at for r in ledger.read().reservations] == [NOW + 1]


def test_a_pool_has_one_holder_and_others_leave_their_mark(ledger: Ledger) -> None:
    mine = ledger.lease("notebook", "me", NOW, changed=True)
    assert mine is not None
    assert ledger.lease("notebook", "you", NOW + 1, changed=True) is None
    assert not ledger.finish(mine, PoolState(), []), "a change came meanwhile"
    again = ledger.renew(mine, NOW + 2)
    assert again is not None
    assert ledger.finish(again, PoolState(), [])
    yours = ledger.lease("notebook", "you", NOW + 3, changed=False)
    assert yours is not None
    assert yours.dirty == ledger.read().dirty["notebook"]


def test_a_dead_holders_lease_lapses_and_its_late_finish_is_void(ledger: Ledger) -> None:
    dead = ledger.lease("notebook", "dead", NOW, changed=False)
    assert dead is not None
    later = NOW + LEASE_SECONDS + 1
    assert ledger.lease("notebook", "next", later, changed=False) is not None
    assert ledger.renew(dead, later) is None
    assert not ledger.finish(dead, PoolState(wanted=9), [])
    assert ledger.read().state("notebook").wanted == 0


def test_what_the_holder_learned_is_saved_with_the_release(ledger: Ledger) -> None:
    stored = ledger.store(reservation(), None, ledger.read())
    lease = ledger.lease("notebook", "me", NOW, changed=False)
    assert lease is not None
    state = PoolState(
        first_seen={"i-0aa": NOW},
        wanted=3,
        wrote=(0, 3, NOW),
        undos=(NOW,),
        overflow={"spare": {"bio101": 4}},
        facts={"m5.xlarge": {"allocatable": {"pods": 58}, "overhead": {"pods": 4}}},
    )
    said = replace(stored, progress=Progress(requested_at=NOW, short="max-size"))
    assert ledger.finish(lease, state, [said])
    view = ledger.read()
    assert view.state("notebook") == state
    assert view.reservations == (replace(said, version=2),)


def test_progress_is_not_saved_over_a_correction(ledger: Ledger) -> None:
    stored = ledger.store(reservation(), None, ledger.read())
    lease = ledger.lease("notebook", "me", NOW, changed=False)
    assert lease is not None
    ledger.store(reservation(pods=40), stored, ledger.read())
    said = replace(stored, progress=Progress(ready_at=NOW))
    assert not ledger.finish(lease, PoolState(wanted=1), [said])
    view = ledger.read()
    assert [(r.pods, r.progress) for r in view.reservations] == [(40, Progress())]
    assert view.state("notebook") == PoolState()


def test_more_reservations_than_a_transaction_takes_are_saved_all_the_same(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firstbell.cloud.ledger.MOST_ITEMS_IN_A_TRANSACTION", 5)  # of 100: moto takes its time
    stored = [ledger.store(reservation(f"class-{n}"), None, ledger.read()) for n in range(12)]
    lease = ledger.lease("notebook", "me", NOW, changed=False)
    assert lease is not None
    assert ledger.finish(lease, PoolState(), [replace(r, progress=Progress(requested_at=NOW)) for r in stored])
    assert all(r.progress.requested_at == NOW for r in ledger.read().reservations)


def test_an_abandoned_lease_is_free_and_keeps_the_mark(ledger: Ledger) -> None:
    lease = ledger.lease("notebook", "me", NOW, changed=True)
    assert lease is not None
    ledger.abandon(lease)
    other = ledger.lease("notebook", "you", NOW, changed=False)
    assert other is not None
    assert other.dirty == lease.dirty


def test_a_pause_is_seen_by_the_next_reader(ledger: Ledger) -> None:
    ledger.pause("operator", NOW)
    assert ledger.read().paused
    ledger.resume()
    assert not ledger.read().paused


class Refusing:
    """A DynamoDB that refuses the first calls of one operation, and is moto's for all else."""

    def __init__(self, clients: Clients, operation: str, code: str, times: int, **more: Any) -> None:
        self._client, self._operation, self._left = clients.dynamodb, operation, times
        self._answer = {"Error": {"Code": code, "Message": "made up"}, **more}

    @property
    def dynamodb(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name == self._operation and self._left:
            self._left -= 1
            raise ClientError(self._answer, name)  # type: ignore[arg-type]
        return getattr(self._client, name)


def refusing(clients: Clients, operation: str, code: str, times: int = 99, **more: Any) -> Ledger:
    return Ledger(Refusing(clients, operation, code, times, **more), TABLE, "hub", lambda _: None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("query", lambda ledger: ledger.read()),
        ("transact_write_items", lambda ledger: ledger.store(reservation(), None, LedgerView())),
        ("update_item", lambda ledger: ledger.lease("notebook", "me", NOW, changed=True)),
    ],
)
def test_a_throttled_table_is_tried_again_later_and_never_read_as_empty(
    clients: Clients, operation: str, call: Callable[[Ledger], object]
) -> None:
    with pytest.raises(RetryLater, match="ProvisionedThroughputExceeded"):
        call(refusing(clients, operation, "ProvisionedThroughputExceededException"))


def test_a_throttled_transaction_is_tried_again_later(clients: Clients) -> None:
    reasons = [{"Code": "None"}, {"Code": "ThrottlingError", "Message": "made up"}]
    ledger = refusing(clients, "transact_write_items", "TransactionCanceledException", CancellationReasons=reasons)
    with pytest.raises(RetryLater):
        ledger.store(reservation(), None, LedgerView())


@pytest.mark.parametrize("ledger", ["dynamodb"], indirect=True)
def test_a_mark_that_meets_a_transaction_is_made_all_the_same(ledger: Ledger, clients: Clients) -> None:
    """The fake has no transactions to meet."""
    mine = ledger.lease("notebook", "me", NOW, changed=False)
    assert mine is not None
    rival = refusing(clients, "update_item", "TransactionConflictException", times=3)
    assert rival.lease("notebook", "you", NOW + 1, changed=True) is None
    assert not ledger.finish(mine, PoolState(), []), "the rival's change is not seen yet"


def test_a_mark_that_cannot_be_made_fails_the_run_so_that_it_is_tried_again(clients: Clients) -> None:
    with pytest.raises(RetryLater):
        refusing(clients, "update_item", "TransactionConflictException").lease("notebook", "you", NOW, changed=True)
