"""The resource types of the product's template, deployed by CloudFormation's own API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.localcloud_aws.conftest import ACCOUNT, CLUSTER, REGION, StartedCloud
from tests.functional.localcloud_aws.functions import unique

BUS, PRINCIPAL, POOL = "types-bus", f"arn:aws:iam::{ACCOUNT}:role/types", "types-pool"


def template(*, max_size: str = "20", groups: list[str] | None = None, suffix: str) -> dict[str, Any]:
    bus_arn = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/{BUS}-{suffix}"
    queue_arn = {"Fn::GetAtt": ["Dlq", "Arn"]}
    key = [{"AttributeName": name, "KeyType": kind} for name, kind in (("pk", "HASH"), ("sk", "RANGE"))]
    resources: dict[str, Any] = {
        "Bus": ("AWS::Events::EventBus", {"Name": f"{BUS}-{suffix}"}),
        "Allow": (
            "AWS::Events::EventBusPolicy",
            {
                "EventBusName": {"Ref": "Bus"},
                "StatementId": "portals",
                "Statement": {
                    "Effect": "Allow",
                    "Principal": {"AWS": "111111111111"},
                    "Action": "events:PutEvents",
                    "Resource": bus_arn,
                },
            },
        ),
        "Archive": ("AWS::Events::Archive", {"SourceArn": bus_arn, "RetentionDays": 7}),
        "Entry": (
            "AWS::EKS::AccessEntry",
            {
                "ClusterName": CLUSTER,
                "PrincipalArn": f"{PRINCIPAL}-{suffix}",
                "KubernetesGroups": groups or ["firstbell:a"],
                "Type": "STANDARD",
            },
        ),
        "Ledger": (
            "AWS::DynamoDB::Table",
            {
                "KeySchema": key,
                "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
                "BillingMode": "PAY_PER_REQUEST",
                "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True},
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            },
        ),
        "Dlq": ("AWS::SQS::Queue", {}),
        "Function": (
            "AWS::Lambda::Function",
            {
                "Runtime": "python3.13",
                "Handler": "index.handler",
                "Role": f"arn:aws:iam::{ACCOUNT}:role/function",
                "Code": {"ZipFile": "def handler(event, context): return {}"},
                "DeadLetterConfig": {"TargetArn": queue_arn},
                "ReservedConcurrentExecutions": 7,
                "RecursiveLoop": "Allow",
            },
        ),
        "Alarm": (
            "AWS::CloudWatch::Alarm",
            {
                "MetricName": "Errors",
                "Namespace": "AWS/Lambda",
                "Threshold": 1,
                "EvaluationPeriods": 1,
                "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            },
        ),
        "MathAlarm": (
            "AWS::CloudWatch::Alarm",
            {
                "Metrics": [{"Id": "sum", "Expression": "a + b"}],
                "Threshold": 1,
                "EvaluationPeriods": 1,
                "ComparisonOperator": "GreaterThanThreshold",
            },
        ),
        "Composite": ("AWS::CloudWatch::CompositeAlarm", {"AlarmRule": {"Fn::Sub": 'ALARM("${Alarm}")'}}),
        "Query": ("AWS::Logs::QueryDefinition", {"Name": "q", "QueryString": "fields @message"}),
        "Template": (
            "AWS::EC2::LaunchTemplate",
            {"LaunchTemplateData": {"ImageId": "ami-12345678", "InstanceType": "m5.xlarge"}},
        ),
        "Group": (
            "AWS::AutoScaling::AutoScalingGroup",
            {
                "AutoScalingGroupName": f"{POOL}-{suffix}",
                "MinSize": "0",
                "MaxSize": max_size,
                "AvailabilityZones": [f"{REGION}a"],
                "LaunchTemplate": {
                    "LaunchTemplateId": {"Ref": "Template"},
                    "Version": {"Fn::GetAtt": ["Template", "LatestVersionNumber"]},
                },
                "Tags": [{"Key": "kubernetes.io/cluster/hub", "Value": "owned", "PropagateAtLaunch": True}],
            },
        ),
        "Hook": (
            "AWS::AutoScaling::LifecycleHook",
            {
                "AutoScalingGroupName": {"Ref": "Group"},
                "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
                "HeartbeatTimeout": 120,
            },
        ),
    }
    return {
        "Resources": {name: {"Type": kind, "Properties": properties} for name, (kind, properties) in resources.items()},
        "Outputs": {name: {"Value": {"Ref": name}} for name in ("Ledger", "Function", "Archive", "MathAlarm")},
    }


@pytest.fixture(scope="module")
def deployed(cloud: StartedCloud) -> Iterator[dict[str, str]]:
    client, name = cloud.client("cloudformation"), unique("types")
    client.create_stack(StackName=name, TemplateBody=json.dumps(template(suffix=name)))
    client.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
    outputs = client.describe_stacks(StackName=name)["Stacks"][0]["Outputs"]
    yield {"stack": name, **{output["OutputKey"]: output["OutputValue"] for output in outputs}}
    client.delete_stack(StackName=name)
    client.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
    found = cloud.fleet_client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[f"{POOL}-{name}"])
    assert found["AutoScalingGroups"] == []
    assert f"{PRINCIPAL}-{name}" not in cloud.client("eks").list_access_entries(clusterName=CLUSTER)["accessEntries"]


def test_an_access_entry_of_the_template_is_the_clusters(cloud: StartedCloud, deployed: dict[str, str]) -> None:
    entry = cloud.client("eks").describe_access_entry(
        clusterName=CLUSTER, principalArn=f"{PRINCIPAL}-{deployed['stack']}"
    )["accessEntry"]
    assert entry["kubernetesGroups"] == ["firstbell:a"]


def test_a_group_of_the_template_is_made_in_the_fleet(cloud: StartedCloud, deployed: dict[str, str]) -> None:
    groups = cloud.fleet_client("autoscaling")
    name = f"{POOL}-{deployed['stack']}"
    (group,) = groups.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    assert (group["MinSize"], group["MaxSize"], group["DesiredCapacity"]) == (0, 20, 0)
    assert group["Tags"][0]["Key"] == "kubernetes.io/cluster/hub"
    (hook,) = groups.describe_lifecycle_hooks(AutoScalingGroupName=name)["LifecycleHooks"]
    assert hook["HeartbeatTimeout"] == 120


def test_a_tables_ttl_and_recovery_are_on(cloud: StartedCloud, deployed: dict[str, str]) -> None:
    client = cloud.client("dynamodb")
    ttl = client.describe_time_to_live(TableName=deployed["Ledger"])["TimeToLiveDescription"]
    assert ttl == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}
    backups = client.describe_continuous_backups(TableName=deployed["Ledger"])["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"


def test_a_functions_dead_letters_and_reserved_concurrency_are_kept(
    cloud: StartedCloud, deployed: dict[str, str]
) -> None:
    client, name = cloud.client("lambda"), deployed["Function"]
    assert "sqs" in client.get_function_configuration(FunctionName=name)["DeadLetterConfig"]["TargetArn"]
    assert client.get_function_concurrency(FunctionName=name)["ReservedConcurrentExecutions"] == 7
    assert client.get_function_recursion_config(FunctionName=name)["RecursiveLoop"] == "Allow"


def test_bus_policy_archive_and_alarms_are_described(cloud: StartedCloud, deployed: dict[str, str]) -> None:
    events = cloud.client("events")
    policy = json.loads(events.describe_event_bus(Name=f"{BUS}-{deployed['stack']}")["Policy"])
    assert [statement["Sid"] for statement in policy["Statement"]] == ["portals"]
    assert events.describe_archive(ArchiveName=deployed["Archive"])["RetentionDays"] == 7
    alarms = cloud.client("cloudwatch").describe_alarms(AlarmTypes=["MetricAlarm", "CompositeAlarm"])
    (math,) = [alarm for alarm in alarms["MetricAlarms"] if alarm["AlarmName"] == deployed["MathAlarm"]]
    assert math["Metrics"][0]["Expression"] == "a + b"
    assert any(alarm["AlarmName"].startswith(deployed["stack"]) for alarm in alarms["CompositeAlarms"])


def test_an_update_changes_limits_and_leaves_desired_capacity(cloud: StartedCloud, deployed: dict[str, str]) -> None:
    groups, name = cloud.fleet_client("autoscaling"), f"{POOL}-{deployed['stack']}"
    groups.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, MaxSize=20)
    client = cloud.client("cloudformation")
    changed = template(max_size="10", groups=["firstbell:b"], suffix=deployed["stack"])
    groups.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=1)
    client.update_stack(StackName=deployed["stack"], TemplateBody=json.dumps(changed))
    client.get_waiter("stack_update_complete").wait(StackName=deployed["stack"], WaiterConfig={"Delay": 1})
    (group,) = groups.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    assert (group["MaxSize"], group["DesiredCapacity"]) == (10, 1)
    entry = cloud.client("eks").describe_access_entry(
        clusterName=CLUSTER, principalArn=f"{PRINCIPAL}-{deployed['stack']}"
    )["accessEntry"]
    assert entry["kubernetesGroups"] == ["firstbell:b"]
