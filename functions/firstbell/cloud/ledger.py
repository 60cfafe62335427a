"""The ledger: one DynamoDB table that remembers reservations, what is known of each pool, and who may write it now.

All of a cluster's pre-scale state is one partition, so that one consistent Query reads it whole:

    pk = CLUSTER#<cluster>   sk = RESERVATION#<reference>   a reservation, live or remembered
                             sk = POOL#<pool>               lease, dirty count, PoolState
                             sk = PORTAL#<portal>           counts stored signals, so that caps hold under concurrency
                             sk = PAUSE                     present while the operator has paused Firstbell
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from firstbell.capacity.pool_state import PoolState, state_from_document
from firstbell.cloud.ledger_items import (
    SCHEMA_VERSION,
    conditional,
    next_version,
    number,
    put_reservation,
    read_reservation,
)
from firstbell.cloud.refusals import translated
from firstbell.errors import Conflict, RetryLater

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

    from firstbell.capacity.reservations import Reservation
    from firstbell.cloud.session import Clients

LEASE_SECONDS = 30.0
MOST_ITEMS_IN_A_TRANSACTION = 100
MARKS = 5
MARK_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to bring one pool to size. `dirty` is the count of demand changes that the holder has taken in."""

    pool: str
    holder: str
    dirty: int
    until: float


@dataclass(frozen=True, slots=True)
class LedgerView:
    """The partition as one consistent Query read it."""

    reservations: tuple[Reservation, ...] = ()
    pools: Mapping[str, PoolState] = field(default_factory=dict)
    dirty: Mapping[str, int] = field(default_factory=dict)
    """Pool -> count of demand changes so far."""
    portal_versions: Mapping[str, int] = field(default_factory=dict)
    paused: bool = False

    def state(self, pool: str) -> PoolState:
        return self.pools.get(pool) or PoolState()

    def with_reservation(self, stored: Reservation) -> LedgerView:
        """As it is after `stored` was written."""
        others = tuple(r for r in self.reservations if r.reference != stored.reference)
        return replace(self, reservations=(*others, stored))

    def reservation(self, reference: str) -> Reservation | None:
        return next((r for r in self.reservations if r.reference == reference), None)


class Ledger:
    """Raises Conflict where a condition failed, RetryLater where DynamoDB throttled or did not answer."""

    def __init__(self, clients: Clients, table: str, cluster: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._clients = clients
        self._sleep = sleep
        self._table = table
        self._pk = f"CLUSTER#{cluster}"

    def read(self) -> LedgerView:
        """The whole partition, strongly consistent, page by page."""
        reservations: list[Reservation] = []
        pools: dict[str, PoolState] = {}
        dirty: dict[str, int] = {}
        versions: dict[str, int] = {}
        paused = False
        for item in self._items():
            kind, _, name = item["sk"]["S"].partition("#")
            match kind:
                case "RESERVATION":
                    reservations.append(read_reservation(item))
                case "POOL":
                    pools[name] = state_from_document(json.loads(item.get("state", {}).get("S", "{}")))
                    dirty[name] = int(item.get("dirty", {}).get("N", "0"))
                case "PORTAL":
                    versions[name] = int(item["version"]["N"])
                case "PAUSE":
                    paused = True
        return LedgerView(tuple(reservations), pools, dirty, versions, paused)

    def _items(self) -> Iterable[dict[str, Any]]:
        start: dict[str, Any] = {}
        while True:
            with translated("dynamodb:Query"):
                page = self._clients.dynamodb.query(
                    TableName=self._table,
                    KeyConditionExpression="pk = :pk",
                    ExpressionAttributeValues={":pk": {"S": self._pk}},
                    ConsistentRead=True,
                    **start,
                )
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def store(self, reservation: Reservation, replaces: Reservation | None, view: LedgerView) -> Reservation:
        """Stores what `view` admitted; Conflict if the same portal stored anything since, or the item changed.

        The portal's counter makes its caps strict: of two signals that each fit alone, the second is decided anew.
        """
        stored = replace(reservation, version=replaces.version + 1 if replaces else 1)
        seen = view.portal_versions.get(reservation.portal, 0)
        self._transact(
            [
                self._put_reservation(stored, replaces.version if replaces else 0),
                {
                    "Update": {
                        "TableName": self._table,
                        "Key": self._key(f"PORTAL#{reservation.portal}"),
                        "UpdateExpression": "SET version = :next",
                        "ConditionExpression": "version = :seen" if seen else "attribute_not_exists(pk)",
                        "ExpressionAttributeValues": {":next": number(seen + 1)}
                        | ({":seen": number(seen)} if seen else {}),
                    }
                },
            ]
        )
        return stored

    def lease(self, pool: str, holder: str, now: float, *, changed: bool) -> Lease | None:
        """Takes the pool's lease if it is free or lapsed. `changed` marks the pool dirty, also where it is not free.

        The mark is made before the second attempt, so a holder that releases in between finds it and loops, and one
        that released before leaves the lease to us: no change of demand goes unseen.
        """
        lease = self._take(pool, holder, now, dirty=1 if changed else 0)
        if lease is None and changed:
            self._mark_dirty(pool)
            lease = self._take(pool, holder, now, dirty=0)
        return lease

    def _mark_dirty(self, pool: str) -> None:
        """Tried again where it meets the transaction in which the holder gives the lease back; RetryLater at last."""
        for _ in range(MARKS):
            try:
                with conditional("dynamodb:UpdateItem"):
                    self._clients.dynamodb.update_item(
                        TableName=self._table,
                        Key=self._key(f"POOL#{pool}"),
                        UpdateExpression="ADD dirty :one",
                        ExpressionAttributeValues={":one": number(1)},
                    )
            except Conflict:
                self._sleep(MARK_PAUSE_SECONDS)
            else:
                return
        raise RetryLater(f"dynamodb:UpdateItem: POOL#{pool} was in a transaction through {MARKS} tries to mark it")

    def _take(self, pool: str, holder: str, now: float, *, dirty: int) -> Lease | None:
        until = now + LEASE_SECONDS
        try:
            attributes = self._update(
                pool,
                "SET lease_holder = :me, lease_until = :until ADD dirty :dirty",
                {":me": {"S": holder}, ":until": number(until), ":now": number(now), ":dirty": number(dirty)},
                condition="attribute_not_exists(lease_holder) OR lease_until < :now OR lease_holder = :me",
            )
        except Conflict:
            return None
        return Lease(pool=pool, holder=holder, dirty=int(attributes["dirty"]["N"]), until=until)

    def renew(self, lease: Lease, now: float) -> Lease | None:
        """The lease for another while, with every change so far taken in; None if it was lost."""
        return self._take(lease.pool, lease.holder, now, dirty=0)

    def finish(self, lease: Lease, state: PoolState, changed: Iterable[Reservation]) -> bool:
        """Saves what the holder learned and gives the lease back, in one transaction.

        False: demand changed meanwhile (or the lease was lost): nothing was written, look again.
        """
        release: TransactWriteItemTypeDef = {
            "Update": {
                "TableName": self._table,
                "Key": self._key(f"POOL#{lease.pool}"),
                "UpdateExpression": "SET #state = :state, schema_version = :schema REMOVE lease_holder, lease_until",
                "ConditionExpression": "lease_holder = :me AND dirty = :dirty",
                "ExpressionAttributeNames": {"#state": "state"},
                "ExpressionAttributeValues": {
                    ":state": {"S": json.dumps(state.as_document())},
                    ":schema": number(SCHEMA_VERSION),
                    ":me": {"S": lease.holder},
                    ":dirty": number(lease.dirty),
                },
            }
        }
        puts = [self._put_reservation(next_version(r), r.version) for r in changed]
        try:
            while len(puts) >= MOST_ITEMS_IN_A_TRANSACTION:
                first, puts = puts[:MOST_ITEMS_IN_A_TRANSACTION], puts[MOST_ITEMS_IN_A_TRANSACTION:]
                self._transact(first)
            self._transact([*puts, release])
        except Conflict:
            return False
        return True

    def abandon(self, lease: Lease) -> None:
        """Gives the lease back without saving anything, after an error; the dirty mark stays for whoever is next."""
        try:
            self._update(
                lease.pool,
                "REMOVE lease_holder, lease_until",
                {":me": {"S": lease.holder}},
                condition="lease_holder = :me",
            )
        except (Conflict, RetryLater):
            return  # it lapses by itself

    def pause(self, by: str, now: float) -> None:
        with translated("dynamodb:PutItem"):
            self._clients.dynamodb.put_item(
                TableName=self._table, Item={**self._key("PAUSE"), "by": {"S": by}, "since": number(now)}
            )

    def resume(self) -> None:
        with translated("dynamodb:DeleteItem"):
            self._clients.dynamodb.delete_item(TableName=self._table, Key=self._key("PAUSE"))

    def _key(self, sk: str) -> dict[str, Any]:
        return {"pk": {"S": self._pk}, "sk": {"S": sk}}

    def _put_reservation(self, reservation: Reservation, version_read: int) -> TransactWriteItemTypeDef:
        key = self._key(f"RESERVATION#{reservation.reference}")
        return put_reservation(self._table, key, reservation, version_read)

    def _update(self, pool: str, expression: str, values: dict[str, Any], *, condition: str) -> dict[str, Any]:
        with conditional("dynamodb:UpdateItem"):
            answer = self._clients.dynamodb.update_item(
                TableName=self._table,
                Key=self._key(f"POOL#{pool}"),
                UpdateExpression=expression,
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
                ReturnValues="ALL_NEW",
            )
        return dict(answer["Attributes"])

    def _transact(self, items: Sequence[TransactWriteItemTypeDef]) -> None:
        with conditional("dynamodb:TransactWriteItems"):
            self._clients.dynamodb.transact_write_items(TransactItems=items)
