"""CloudFormation resource types that ministack refuses, each handed to the emulator's own service.

Missing upstream: AccessEntry, EventBusPolicy, Archive, CompositeAlarm, QueryDefinition ("Unrecognized resource
types") and alarms over several metrics.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from localcloud.aws.handlers import Change, Properties, Provisioned, answered, handler
from localcloud.aws.upstream import UpstreamChanged, replace, require

KEEPS_EVERYTHING = '{"source": [{"exists": true}]}'


def install() -> None:
    """Register the types. UpstreamChanged where ministack has them by now or keeps handlers differently."""
    from ministack.services import cloudwatch, eks, eventbridge
    from ministack.services.cloudformation import provisioners

    require(eks, "_create_access_entry", "_update_access_entry", "_delete_access_entry", "_associate_access_policy")
    require(eventbridge, "_event_bus_policies", "_event_buses", "_create_archive", "_update_archive")
    require(cloudwatch, "_put_composite_alarm", "_composite_alarms")
    for resource_type, entry in types().items():
        if resource_type in provisioners._RESOURCE_HANDLERS:
            raise UpstreamChanged(f"ministack now has {resource_type} itself: this extension can go")
        provisioners._RESOURCE_HANDLERS[resource_type] = entry

    def record(name: str, properties: Properties) -> dict[str, Any]:
        return alarm_record(name, properties, upstream_record)

    upstream_record = replace(provisioners, "_cw_metric_alarm_record", "name props", record)


def types() -> dict[str, dict[str, Any]]:
    return {
        "AWS::EKS::AccessEntry": handler(
            create=create_access_entry, update=update_access_entry, delete=delete_access_entry
        ),
        "AWS::Events::EventBusPolicy": handler(
            create=put_bus_statement, update=update_bus_statement, delete=delete_bus_statement
        ),
        "AWS::Events::Archive": handler(create=create_archive, update=update_archive, delete=delete_archive),
        "AWS::CloudWatch::CompositeAlarm": handler(
            create=put_composite_alarm, update=put_composite_alarm, delete=delete_composite_alarm
        ),
        "AWS::Logs::QueryDefinition": handler(create=query_definition, update=query_definition, delete=lambda _: None),
    }


def access_entry_body(properties: Properties) -> dict[str, Any]:
    return {
        "principalArn": properties["PrincipalArn"],
        "kubernetesGroups": properties.get("KubernetesGroups", []),
        "username": properties.get("Username", ""),
        "type": properties.get("Type", "STANDARD"),
        "tags": {tag["Key"]: tag["Value"] for tag in properties.get("Tags", [])},
    }


def create_access_entry(change: Change) -> Provisioned:
    from ministack.services import eks

    cluster, principal = change.properties["ClusterName"], change.properties["PrincipalArn"]
    entry = answered(eks._create_access_entry(cluster, access_entry_body(change.properties)))["accessEntry"]
    for policy in change.properties.get("AccessPolicies", []):
        scope = {key[0].lower() + key[1:]: value for key, value in policy["AccessScope"].items()}
        body = {"policyArn": policy["PolicyArn"], "accessScope": scope}
        answered(eks._associate_access_policy(cluster, principal, body))
    return f"{principal}|{cluster}", {"AccessEntryArn": entry["accessEntryArn"]}


def update_access_entry(change: Change) -> Provisioned:
    from ministack.services import eks

    replaced = ("ClusterName", "PrincipalArn", "Type", "AccessPolicies")
    if any(change.old.get(name) != change.properties.get(name) for name in replaced):
        delete_access_entry(change)
        return create_access_entry(change)
    cluster, principal = change.properties["ClusterName"], change.properties["PrincipalArn"]
    entry = answered(eks._update_access_entry(cluster, principal, access_entry_body(change.properties)))
    return change.physical_id, {"AccessEntryArn": entry["accessEntry"]["accessEntryArn"]}


def delete_access_entry(change: Change) -> None:
    from ministack.services import eks

    principal, cluster = change.physical_id.rsplit("|", 1)
    eks._delete_access_entry(cluster, principal)


def bus_statement(properties: Properties) -> dict[str, Any]:
    """The statement of a bus policy, from `Statement` or from the older single properties.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-events-eventbuspolicy.html
    """
    statement = properties.get("Statement")
    if isinstance(statement, str):
        statement = json.loads(statement)
    if statement is None:
        statement = {"Effect": "Allow", "Principal": properties["Principal"], "Action": properties["Action"]}
        if "Condition" in properties:
            condition = properties["Condition"]
            statement["Condition"] = {condition["Type"]: {condition["Key"]: condition["Value"]}}
    if "NotPrincipal" in statement:
        raise ValueError("NotPrincipal is not evaluated here: deny Principal * with a condition on aws:PrincipalArn")
    return {**statement, "Sid": properties["StatementId"]}


def put_bus_statement(change: Change) -> Provisioned:
    from ministack.services import eventbridge

    bus, statement = change.properties.get("EventBusName", "default"), bus_statement(change.properties)
    eventbridge._ensure_default_bus()
    if bus not in eventbridge._event_buses:
        raise ValueError(f"Event bus {bus} does not exist.")
    policy = eventbridge._event_bus_policies.setdefault(bus, {"Version": "2012-10-17", "Statement": []})
    kept = [other for other in policy["Statement"] if other.get("Sid") != statement["Sid"]]
    policy["Statement"] = [*kept, statement]
    return f"{bus}|{statement['Sid']}", {}


def update_bus_statement(change: Change) -> Provisioned:
    put = put_bus_statement(change)
    if put[0] != change.physical_id:
        delete_bus_statement(change)
    return put


def delete_bus_statement(change: Change) -> None:
    from ministack.services import eventbridge

    bus, statement_id = change.physical_id.rsplit("|", 1)
    eventbridge._remove_permission({"EventBusName": bus, "StatementId": statement_id})


def archive_body(name: str, properties: Properties) -> dict[str, Any]:
    """CreateArchive's body; upstream would refuse the empty pattern that keeps every event."""
    pattern = properties.get("EventPattern") or KEEPS_EVERYTHING
    return {
        "ArchiveName": name,
        "EventSourceArn": properties["SourceArn"],
        "Description": properties.get("Description", ""),
        "RetentionDays": int(properties.get("RetentionDays", 0)),
        "EventPattern": pattern if isinstance(pattern, str) else json.dumps(pattern),
    }


def create_archive(change: Change) -> Provisioned:
    from ministack.services import eventbridge

    name = change.name("ArchiveName")[-48:]
    created = answered(eventbridge._create_archive(archive_body(name, change.properties)))
    return name, {"Arn": created["ArchiveArn"], "ArchiveName": name}


def update_archive(change: Change) -> Provisioned:
    from ministack.services import eventbridge

    updated = answered(eventbridge._update_archive(archive_body(change.physical_id, change.properties)))
    return change.physical_id, {"Arn": updated["ArchiveArn"], "ArchiveName": change.physical_id}


def delete_archive(change: Change) -> None:
    from ministack.services import eventbridge

    eventbridge._delete_archive({"ArchiveName": change.physical_id})


def put_composite_alarm(change: Change) -> Provisioned:
    from ministack.services import cloudwatch

    name = change.physical_id or change.name("AlarmName")
    answered(cloudwatch._put_composite_alarm({}, {**change.properties, "AlarmName": name}, False, is_json=True))
    return name, {"Arn": cloudwatch._composite_alarms[name]["AlarmArn"]}


def delete_composite_alarm(change: Change) -> None:
    from ministack.services import cloudwatch

    cloudwatch._composite_alarms.pop(change.physical_id, None)


def query_definition(change: Change) -> Provisioned:
    """Accepted and not kept: nothing but the console reads a saved query."""
    query_id = change.physical_id or f"{change.stack}-{change.logical_id}"
    return query_id, {"QueryDefinitionId": query_id}


def alarm_record(name: str, properties: Properties, upstream_record: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """An alarm over several metrics is kept and described; its state stays INSUFFICIENT_DATA (README)."""
    if not properties.get("Metrics"):
        return upstream_record(name, properties)
    one_metric = {"Metrics": None, "MetricName": "-", "Namespace": "-", "Threshold": properties.get("Threshold", 0)}
    record = upstream_record(name, {**properties, **one_metric})
    return {**record, "MetricName": None, "Namespace": None, "Metrics": properties["Metrics"]}
