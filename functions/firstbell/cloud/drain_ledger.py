"""What the ledger remembers of drains: in the same DynamoDB table, apart from the pre-scale partition.

    pk = DRAIN#<instance id>  sk = DRAIN                 the one drain of the instance (firstbell.capacity.drains)
    pk = DRAINS#<cluster>     sk = CHANGE#<event arn>    a scheduled change (firstbell.capacity.changes)
                              sk = DETACHED#<instance>   an instance that we took out of its group, to be ended by tick
                              sk = HELD#<instance>       a node that tick gives back if nothing follows

Every write of a drain or a change is conditional on the version that was read, so its transitions stay pure functions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from firstbell.capacity.changes import change_as_document, change_from_document, updated
from firstbell.capacity.drains import drain_as_document, drain_from_document
from firstbell.cloud.refusals import code_of, translated
from firstbell.errors import Conflict, NotFound, RetryLater

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from firstbell.capacity.changes import Change
    from firstbell.capacity.drains import Drain
    from firstbell.cloud.session import Clients

REMEMBERED_SECONDS = 7 * 24 * 3600
"""How long after its last write a drain is remembered: longer than the longest hook (48 hours)."""
MOST_KEYS_IN_A_BATCH = 100
ATTEMPTS = 8
"""How often an item is read again after another writer was first."""
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class DrainView:
    drains: Mapping[str, Drain]
    """Instance id -> its drain."""
    paused: bool
    """Whether the operator has paused Firstbell."""


@dataclass(frozen=True, slots=True)
class Detached:
    """An instance that a Spot notice made us take out of its group."""

    instance_id: str
    pool: str
    group: str
    since: float


@dataclass(frozen=True, slots=True)
class Held:
    """A node that a recommendation or a drill made us hold back, and that nothing may ever take away."""

    instance_id: str
    node: str
    pool: str
    until: float
    """When it is given back, if no drain of it is under way then."""


@dataclass(frozen=True, slots=True)
class Remembered:
    changes: Sequence[Change]
    detached: Sequence[Detached]
    """Instances that may be in no group any more and that nobody else will end."""
    held: Sequence[Held]


class DrainLedger:
    """Raises Conflict where a condition failed, RetryLater where DynamoDB throttled or did not answer."""

    def __init__(self, clients: Clients, table: str, cluster: str) -> None:
        self._clients = clients
        self._table = table
        self._pause_key = _key(f"CLUSTER#{cluster}", "PAUSE")
        self._partition = f"DRAINS#{cluster}"

    def read(self, instance_ids: Collection[str]) -> DrainView:
        """The drains of those instances that have one, strongly consistent; one call per 99 ids."""
        keys = [self._pause_key, *(_drain_key(i) for i in sorted(set(instance_ids)))]
        drains: dict[str, Drain] = {}
        paused = False
        for start in range(0, len(keys), MOST_KEYS_IN_A_BATCH):
            for item in self._batch(keys[start : start + MOST_KEYS_IN_A_BATCH]):
                if item["sk"]["S"] == "PAUSE":
                    paused = True
                else:
                    drain = _drain(item)
                    drains[drain.instance_id] = drain
        return DrainView(drains, paused)

    def write(self, drain: Drain, now: float) -> Drain:
        """Stores the drain if its item is still at `drain.version` (0 = absent); returns it as stored."""
        stored = replace(drain, version=drain.version + 1)
        document = json.dumps(drain_as_document(stored))
        self._put(_drain_key(drain.instance_id), document, drain.version, int(now + REMEMBERED_SECONDS))
        return stored

    def update(self, instance_id: str, change: Callable[[Drain], Drain], now: float) -> Drain:
        """Stores `change` of the drain as it is now, however often another writer is first. Raises NotFound."""
        for _ in range(ATTEMPTS):
            found = self._get(_drain_key(instance_id))
            if found is None:
                raise NotFound(f"no drain of {instance_id} in the ledger")
            try:
                return self.write(change(_drain(found)), now)
            except Conflict:
                continue
        raise RetryLater(f"the drain of {instance_id} is written by others all the time")

    def store_change(self, news: Change) -> Change:
        """Stores an announced change, or adds it to what is stored of it."""
        for _ in range(ATTEMPTS):
            found = self._get(_key(self._partition, f"CHANGE#{news.event_arn}"))
            try:
                return self.write_change(updated(_change(found) if found else None, news))
            except Conflict:
                continue
        raise RetryLater(f"the change {news.event_arn} is written by others all the time")

    def write_change(self, change: Change) -> Change:
        """Stores the change if its item is still at `change.version`."""
        stored = replace(change, version=change.version + 1)
        key = _key(self._partition, f"CHANGE#{change.event_arn}")
        self._put(key, json.dumps(change_as_document(stored)), change.version, int(change.forget_at))
        return stored

    def remembered(self) -> Remembered:
        """All that tick has to look after, changes past their start included; one call for a page of 1 MB."""
        changes: list[Change] = []
        detached: list[Detached] = []
        held: list[Held] = []
        for item in self._items():
            kind, _, name = item["sk"]["S"].partition("#")
            match kind:
                case "CHANGE":
                    changes.append(_change(item))
                case "DETACHED":
                    since = float(item["since"]["N"])
                    detached.append(Detached(name, item["pool"]["S"], item["asg"]["S"], since))
                case "HELD":
                    held.append(Held(name, item["node"]["S"], item["pool"]["S"], float(item["until"]["N"])))
        return Remembered(changes, detached, held)

    def remember_detached(self, detached: Iterable[Detached]) -> None:
        for one in detached:
            with translated("dynamodb:PutItem"):
                self._clients.dynamodb.put_item(
                    TableName=self._table,
                    Item={
                        **_key(self._partition, f"DETACHED#{one.instance_id}"),
                        "pool": {"S": one.pool},
                        "asg": {"S": one.group},
                        "since": _number(one.since),
                        "schema_version": _number(SCHEMA_VERSION),
                        "expires_at": _number(int(one.since + REMEMBERED_SECONDS)),
                    },
                )

    def forget_detached(self, instance_id: str) -> None:
        with translated("dynamodb:DeleteItem"):
            self._clients.dynamodb.delete_item(
                TableName=self._table, Key=_key(self._partition, f"DETACHED#{instance_id}")
            )

    def remember_held(self, held: Held) -> None:
        """A later time replaces an earlier one: each recommendation begins the wait anew."""
        with translated("dynamodb:PutItem"):
            self._clients.dynamodb.put_item(
                TableName=self._table,
                Item={
                    **_key(self._partition, f"HELD#{held.instance_id}"),
                    "node": {"S": held.node},
                    "pool": {"S": held.pool},
                    "until": _number(held.until),
                    "schema_version": _number(SCHEMA_VERSION),
                    "expires_at": _number(int(held.until + REMEMBERED_SECONDS)),
                },
            )

    def forget_held(self, held: Held) -> None:
        """Unless the wait began anew meanwhile."""
        with translated("dynamodb:DeleteItem"):
            try:
                self._clients.dynamodb.delete_item(
                    TableName=self._table,
                    Key=_key(self._partition, f"HELD#{held.instance_id}"),
                    ConditionExpression="attribute_not_exists(pk) OR #until = :until",
                    ExpressionAttributeNames={"#until": "until"},
                    ExpressionAttributeValues={":until": _number(held.until)},
                )
            except ClientError as error:
                if code_of(error) != "ConditionalCheckFailedException":
                    raise

    def _batch(self, keys: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
        for _ in range(ATTEMPTS):
            with translated("dynamodb:BatchGetItem"):
                page = self._clients.dynamodb.batch_get_item(
                    RequestItems={self._table: {"Keys": keys, "ConsistentRead": True}}
                )
            yield from page["Responses"].get(self._table, ())
            left = page.get("UnprocessedKeys", {}).get(self._table)
            if not left:
                return
            keys = list(left["Keys"])
        raise RetryLater("dynamodb:BatchGetItem leaves keys unprocessed")

    def _get(self, key: dict[str, Any]) -> dict[str, Any] | None:
        with translated("dynamodb:GetItem"):
            return self._clients.dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")

    def _put(self, key: dict[str, Any], document: str, version_read: int, expires_at: int) -> None:
        item = {
            **key,
            "document": {"S": document},
            "version": _number(version_read + 1),
            "schema_version": _number(SCHEMA_VERSION),
            "expires_at": _number(expires_at),
        }
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
        if version_read:
            condition = {
                "ConditionExpression": "version = :read",
                "ExpressionAttributeValues": {":read": _number(version_read)},
            }
        with translated("dynamodb:PutItem"):
            try:
                self._clients.dynamodb.put_item(TableName=self._table, Item=item, **condition)
            except ClientError as error:
                if code_of(error) == "ConditionalCheckFailedException":
                    raise Conflict(f"{key['pk']['S']}: another writer was first") from error
                raise

    def _items(self) -> Iterable[dict[str, Any]]:
        start: dict[str, Any] = {}
        while True:
            with translated("dynamodb:Query"):
                page = self._clients.dynamodb.query(
                    TableName=self._table,
                    KeyConditionExpression="pk = :pk",
                    ExpressionAttributeValues={":pk": {"S": self._partition}},
                    ConsistentRead=True,
                    **start,
                )
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def _key(pk: str, sk: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def _drain_key(instance_id: str) -> dict[str, Any]:
    return _key(f"DRAIN#{instance_id}", "DRAIN")


def _number(value: float) -> dict[str, str]:
    return {"N": repr(value)}


def _drain(item: Mapping[str, Any]) -> Drain:
    return replace(drain_from_document(json.loads(item["document"]["S"])), version=int(item["version"]["N"]))


def _change(item: Mapping[str, Any]) -> Change:
    return replace(change_from_document(json.loads(item["document"]["S"])), version=int(item["version"]["N"]))
