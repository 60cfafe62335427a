"""Properties of CloudFormation resources that ministack accepts and drops without a word, applied after all.

Missing upstream: a function's DeadLetterConfig, ReservedConcurrentExecutions and RecursiveLoop; a table's
TimeToLiveSpecification and PointInTimeRecoverySpecification.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-lambda-function.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-table.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localcloud.aws.handlers import Change, Properties, Provisioned, answered
from localcloud.aws.upstream import require


def install() -> None:
    """Let ministack's own handlers make the resource, then apply what they left out."""
    from ministack.services import dynamodb, lambda_svc
    from ministack.services.cloudformation import provisioners

    require(lambda_svc, "_functions")
    require(dynamodb, "_update_ttl", "_update_continuous_backups")
    apply_after(provisioners._RESOURCE_HANDLERS["AWS::Lambda::Function"], apply_function_settings)
    apply_after(provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"], apply_table_settings)


def apply_after(entry: dict[str, Any], apply: Callable[[str, Change], None]) -> None:
    """Call `apply(physical id, change)` after each create and update that ministack's `entry` makes."""
    upstream_create, upstream_update = entry["create"], entry["update"]

    def create(logical_id: str, properties: Properties, stack: str) -> Provisioned:
        provisioned: Provisioned = upstream_create(logical_id, properties, stack)
        apply(provisioned[0], Change(properties=properties))
        return provisioned

    def update(name: str, old: Properties, properties: Properties, stack: str, logical_id: str) -> Provisioned:
        provisioned: Provisioned = upstream_update(name, old, properties, stack, logical_id)
        apply(provisioned[0], Change(properties=properties, old=old))
        return provisioned

    entry.update(create=create, update=update)


def apply_function_settings(name: str, change: Change) -> None:
    from ministack.services import lambda_svc

    function = lambda_svc._functions[name]
    function["config"]["DeadLetterConfig"] = change.properties.get("DeadLetterConfig") or {}
    reserved = change.properties.get("ReservedConcurrentExecutions")
    function["concurrency"] = None if reserved is None else int(reserved)
    function["recursive_loop"] = change.properties.get("RecursiveLoop", "Terminate")


def apply_table_settings(name: str, change: Change) -> None:
    from ministack.services import dynamodb

    time_to_live = change.properties.get("TimeToLiveSpecification")
    if time_to_live is None and "TimeToLiveSpecification" in change.old:
        time_to_live = {**change.old["TimeToLiveSpecification"], "Enabled": False}
    if time_to_live is not None:
        enabled = str(time_to_live["Enabled"]).lower() == "true"
        specification = {"AttributeName": time_to_live["AttributeName"], "Enabled": enabled}
        answered(dynamodb._update_ttl({"TableName": name, "TimeToLiveSpecification": specification}))
    recovery = change.properties.get("PointInTimeRecoverySpecification") or {}
    enabled = str(recovery.get("PointInTimeRecoveryEnabled", False)).lower() == "true"
    specification = {"PointInTimeRecoveryEnabled": enabled}
    answered(
        dynamodb._update_continuous_backups({"TableName": name, "PointInTimeRecoverySpecification": specification})
    )
