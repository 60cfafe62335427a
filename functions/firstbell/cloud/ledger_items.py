"""Reservations and conditions as DynamoDB has them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from firstbell.capacity.reservations import Progress, Reservation
from firstbell.capacity.resources import Resources
from firstbell.cloud.refusals import code_of, translated
from firstbell.errors import Conflict, RetryLater

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

SCHEMA_VERSION = 1

_LOST_RACES = frozenset({"ConditionalCheckFailedException", "TransactionConflictException"})
_LOST_RACES_IN_TRANSACTION = frozenset({"ConditionalCheckFailed", "TransactionConflict"})
_THROTTLED_IN_TRANSACTION = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError"})
"""https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html"""


@contextmanager
def conditional(operation: str) -> Iterator[None]:
    """Translates a failed condition, or a transaction that met another, into Conflict, a throttled one into RetryLater;
    all else as everywhere.

    A cancelled transaction gives a reason an item (TransactWriteItems, "TransactionCanceledException").
    """
    with translated(operation):
        try:
            yield
        except ClientError as error:
            reasons = {r.get("Code") for r in error.response.get("CancellationReasons", ())}
            if code_of(error) in _LOST_RACES or reasons & _LOST_RACES_IN_TRANSACTION:
                raise Conflict(f"{operation}: another writer was first") from error
            if reasons & _THROTTLED_IN_TRANSACTION:
                throttled = RetryLater(f"{operation}: throttled")
                throttled.operation = operation
                raise throttled from error
            raise


def number(value: float) -> dict[str, str]:
    return {"N": repr(value)}


def next_version(reservation: Reservation) -> Reservation:
    return replace(reservation, version=reservation.version + 1)


def read_reservation(item: Mapping[str, Any]) -> Reservation:
    """Reads what was stored; fields that this version does not know are dropped, absent ones take their defaults."""
    document = json.loads(item["document"]["S"])
    known = {name: document[name] for name in Reservation.__dataclass_fields__ if name in document}
    known["pod"] = Resources(**known["pod"])
    progress = known.get("progress", {})
    known["progress"] = Progress(**{n: progress[n] for n in Progress.__dataclass_fields__ if n in progress})
    known["event_ids"] = tuple(known.get("event_ids", ()))
    known["version"] = int(item["version"]["N"])
    return Reservation(**known)


def put_reservation(
    table: str, key: Mapping[str, Any], reservation: Reservation, version_read: int
) -> TransactWriteItemTypeDef:
    """Part of a transaction: stores it only if its item is still at the version that was read (0 = absent)."""
    item = {
        **key,
        "document": {"S": json.dumps(asdict(reservation))},
        "version": number(reservation.version),
        "schema_version": number(SCHEMA_VERSION),
        "expires_at": number(int(reservation.forget_at)),
    }
    if not version_read:
        return {"Put": {"TableName": table, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}}
    return {
        "Put": {
            "TableName": table,
            "Item": item,
            "ConditionExpression": "version = :read",
            "ExpressionAttributeValues": {":read": number(version_read)},
        }
    }
