"""What a lease and a claim in DynamoDB rest on: conditions that hold against many writers at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.functional.localcloud_aws.conftest import StartedCloud
from tests.functional.localcloud_aws.functions import unique


def item(sk: str, **values: int | str) -> dict[str, Any]:
    kinds = {key: {"N": str(value)} if isinstance(value, int) else {"S": value} for key, value in values.items()}
    return {"pk": {"S": "CLUSTER#hub"}, "sk": {"S": sk}, **kinds}


@pytest.fixture(scope="module")
def table(cloud: StartedCloud) -> Iterator[str]:
    client, name = cloud.client("dynamodb"), unique("ledger")
    keys = (("pk", "HASH"), ("sk", "RANGE"))
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key, _ in keys],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=name)
    yield name
    client.delete_table(TableName=name)


def test_of_many_claimants_exactly_one_gets_a_lease(cloud: StartedCloud, table: str) -> None:
    client = cloud.client("dynamodb")

    def claim(number: int) -> bool:
        try:
            client.put_item(
                TableName=table,
                Item=item("POOL#a", holder=f"h{number}", until=int(time.time()) + 60),
                ConditionExpression="attribute_not_exists(pk) OR #until < :now",
                ExpressionAttributeNames={"#until": "until"},
                ExpressionAttributeValues={":now": {"N": str(int(time.time()))}},
            )
        except client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, range(24))) == 1


def test_concurrent_increments_are_all_counted(cloud: StartedCloud, table: str) -> None:
    client = cloud.client("dynamodb")

    def increment(_: int) -> None:
        client.update_item(
            TableName=table,
            Key=item("COUNT"),
            UpdateExpression="ADD revision :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(increment, range(80)))
    assert client.get_item(TableName=table, Key=item("COUNT"))["Item"]["revision"] == {"N": "80"}


@pytest.mark.parametrize("operation", ["put_item", "update_item", "delete_item"])
def test_a_failed_condition_can_return_the_item(cloud: StartedCloud, table: str, operation: str) -> None:
    client = cloud.client("dynamodb")
    client.put_item(TableName=table, Item=item("R#1", revision=3))
    target = {"Item": item("R#1", revision=2)} if operation == "put_item" else {"Key": item("R#1")}
    with pytest.raises(ClientError) as refused:
        getattr(client, operation)(
            TableName=table,
            **target,
            ConditionExpression="revision < :two",
            ExpressionAttributeValues={":two": {"N": "2"}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert refused.value.response["Error"]["Code"] == "ConditionalCheckFailedException"
    assert refused.value.response["Item"]["revision"] == {"N": "3"}  # type: ignore[typeddict-item]


def test_a_transaction_writes_all_or_nothing_and_tells_which_condition_failed(cloud: StartedCloud, table: str) -> None:
    client = cloud.client("dynamodb")
    client.put_item(TableName=table, Item=item("R#2", revision=1))
    put = {"Put": {"TableName": table, "Item": item("R#3", revision=1)}}
    check = {
        "ConditionCheck": {
            "TableName": table,
            "Key": item("R#2"),
            "ConditionExpression": "revision = :two",
            "ExpressionAttributeValues": {":two": {"N": "2"}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }
    with pytest.raises(client.exceptions.TransactionCanceledException) as cancelled:
        client.transact_write_items(TransactItems=[put, check])
    first, second = cancelled.value.response["CancellationReasons"]
    assert (first["Code"], second["Code"]) == ("None", "ConditionalCheckFailed")
    assert second["Item"]["revision"] == {"N": "1"}
    assert "Item" not in client.get_item(TableName=table, Key=item("R#3"))


def test_items_of_a_partition_come_in_pages(cloud: StartedCloud, table: str) -> None:
    client = cloud.client("dynamodb")
    for number in range(5):
        client.put_item(TableName=table, Item=item(f"PAGE#{number}"))
    pages = client.get_paginator("query").paginate(
        TableName=table,
        KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
        ExpressionAttributeValues={":pk": {"S": "CLUSTER#hub"}, ":prefix": {"S": "PAGE#"}},
        PaginationConfig={"PageSize": 2},
        ConsistentRead=True,
    )
    assert [len(page["Items"]) for page in pages] == [2, 2, 1]
