"""What the stack is made of, one sentence a test."""

from __future__ import annotations

import json

import pytest

from tests.infra import documents
from tests.infra.stacks import Synthesized, synthesize

FUNCTIONS = tuple(f"firstbell-hub-{name}" for name in ("prescale", "tick", "interruption", "idle"))


def test_no_group_pins_its_desired_capacity(shipped: Synthesized) -> None:
    """case 41: a deployment in the middle of a class must not resize it."""
    groups = shipped.of_type("AWS::AutoScaling::AutoScalingGroup")
    assert len(groups) == 3
    assert not any("DesiredCapacity" in group for group in groups.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_runs_python_3_13_on_arm64_and_is_traced(shipped: Synthesized, name: str) -> None:
    function = shipped.one("AWS::Lambda::Function", FunctionName=name)
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == ["arm64"]
    assert function["TracingConfig"] == {"Mode": "Active"}
    assert function["Handler"] == f"firstbell.{name.rsplit('-', 1)[1]}.handler.handler"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_knows_its_bus_and_its_ledger(shipped: Synthesized, name: str) -> None:
    variables = shipped.one("AWS::Lambda::Function", FunctionName=name)["Environment"]["Variables"]
    assert variables["FIRSTBELL_BUS"] == {"Ref": shipped.logical_id("AWS::Events::EventBus", Name="firstbell-hub")}
    table = shipped.logical_id("AWS::DynamoDB::Table", TableName="firstbell-hub")
    assert variables["FIRSTBELL_LEDGER"] == {"Ref": table}
    # It would become a dimension of every metric, which no alarm or widget names.
    assert "POWERTOOLS_SERVICE_NAME" not in variables
    assert variables["POWERTOOLS_METRICS_NAMESPACE"] == "Firstbell"


def test_all_functions_share_one_zip(shipped: Synthesized) -> None:
    zips = {
        json.dumps(function["Code"])
        for function in shipped.of_type("AWS::Lambda::Function").values()
        if function["FunctionName"] in FUNCTIONS
    }
    assert len(zips) == 1


def test_every_log_group_ends_after_a_month_and_with_the_stack(shipped: Synthesized) -> None:
    functions = {entry["FunctionName"] for entry in shipped.of_type("AWS::Lambda::Function").values()}
    groups = shipped.of_type("AWS::Logs::LogGroup")
    assert {group["LogGroupName"] for group in groups.values()} == {f"/aws/lambda/{name}" for name in functions}
    assert all(group["RetentionInDays"] == 30 for group in groups.values())
    assert all(shipped.template["Resources"][group]["DeletionPolicy"] == "Delete" for group in groups)


@pytest.mark.parametrize("capability", ["prescale", "tick", "interruption", "idle"])
def test_every_function_has_an_access_entry_of_its_own_with_its_group(shipped: Synthesized, capability: str) -> None:
    entry = shipped.one("AWS::EKS::AccessEntry", KubernetesGroups=[f"firstbell:{capability}"])
    role = entry["PrincipalArn"]["Fn::GetAtt"][0]
    function = shipped.one("AWS::Lambda::Function", FunctionName=f"firstbell-hub-{capability}")
    assert function["Role"] == {"Fn::GetAtt": [role, "Arn"]}
    assert entry["ClusterName"] == "hub"
    assert "AccessPolicies" not in entry


def test_a_signal_that_fails_three_times_is_kept_for_two_weeks(shipped: Synthesized) -> None:
    invocation = next(
        entry for entry in shipped.of_type("AWS::Lambda::EventInvokeConfig").values() if "DestinationConfig" in entry
    )
    assert invocation["MaximumRetryAttempts"] == 2
    queue_id = invocation["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    queue = shipped.of_type("AWS::SQS::Queue")[queue_id]
    assert queue["MessageRetentionPeriod"] == 14 * 24 * 3600
    assert queue["SqsManagedSseEnabled"] is True


def test_an_event_that_cannot_be_delivered_goes_to_the_same_queue(shipped: Synthesized) -> None:
    target = shipped.one("AWS::Events::Rule", EventPattern={"detail-type": ["Demand Signal", "Demand Cancelled"]})
    assert target["Targets"][0]["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0] in shipped.of_type("AWS::SQS::Queue")


def test_what_a_portal_sends_under_another_detail_type_is_answered_too(shipped: Synthesized) -> None:
    pattern = {
        "source": ["edu.example.timetable"],
        "detail-type": [{"anything-but": ["Demand Signal", "Demand Cancelled"]}],
    }
    rule = shipped.one("AWS::Events::Rule", EventPattern=pattern)
    assert rule["Targets"][0]["Arn"]["Fn::GetAtt"][0] == shipped.logical_id(
        "AWS::Lambda::Function", FunctionName="firstbell-hub-prescale"
    )


def test_the_queues_refuse_plain_http(shipped: Synthesized) -> None:
    policies = shipped.of_type("AWS::SQS::QueuePolicy").values()
    assert len(policies) == len(shipped.of_type("AWS::SQS::Queue"))
    for policy in policies:
        statements = policy["PolicyDocument"]["Statement"]
        assert any(
            s["Effect"] == "Deny" and s["Condition"] == {"Bool": {"aws:SecureTransport": "false"}} for s in statements
        )


def test_the_tick_runs_every_minute_and_a_late_one_is_dropped(shipped: Synthesized) -> None:
    schedule = shipped.one("AWS::Scheduler::Schedule", Name="firstbell-hub-tick")
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert schedule["Target"]["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}


def test_a_failed_launch_of_a_group_of_ours_runs_the_tick_at_once() -> None:
    stack = synthesize(
        documents.text(
            documents.cluster(
                pools=[documents.pool(), {**documents.pool("managed"), "asg": None, "nodegroup": "workers"}]
            )
        )
    )
    rule = next(
        r
        for r in stack.of_type("AWS::Events::Rule").values()
        if r["EventPattern"]["detail-type"] == ["EC2 Instance Launch Unsuccessful"]
    )
    assert rule["EventPattern"]["source"] == ["aws.autoscaling"]
    assert rule["EventPattern"]["detail"] == {"AutoScalingGroupName": ["users-group", {"prefix": "eks-workers-"}]}
    assert "EventBusName" not in rule


def test_the_ledger_is_paid_by_request_forgets_by_itself_and_can_be_restored(shipped: Synthesized) -> None:
    table = shipped.one("AWS::DynamoDB::Table")
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert [(key["AttributeName"], key["KeyType"]) for key in table["KeySchema"]] == [("pk", "HASH"), ("sk", "RANGE")]


def test_functions_join_the_vpc_of_a_private_endpoint() -> None:
    private = {"vpc": "vpc-0a1b2c3d", "subnets": ["subnet-0a1b2c3d"], "security_groups": ["sg-0a1b2c3d"]}
    stack = synthesize(documents.text(documents.cluster(private_endpoint=private)))
    for function in stack.of_type("AWS::Lambda::Function").values():
        assert function["VpcConfig"] == {"SubnetIds": ["subnet-0a1b2c3d"], "SecurityGroupIds": ["sg-0a1b2c3d"]}


def test_there_is_no_vpc_without_a_private_endpoint(shipped: Synthesized) -> None:
    assert not any("VpcConfig" in function for function in shipped.of_type("AWS::Lambda::Function").values())


def test_the_longest_name_of_a_cluster_fits_everywhere() -> None:
    """EKS takes 100 characters and underscores; functions, roles and schedules 64, stacks no underscore."""
    name = "university_of_" + "x" * 86
    stack = synthesize(
        documents.text(
            documents.cluster(name, pools=[documents.created()], api_server=documents.API_SERVER),
            documents.cluster("hub-eu", "eu-west-1"),
        ),
        name,
    )
    for resource_type, key, most in (
        ("AWS::Lambda::Function", "FunctionName", 64),
        ("AWS::Scheduler::Schedule", "Name", 64),
        ("AWS::SQS::Queue", "QueueName", 80),
        ("AWS::IAM::Role", "RoleName", 64),
    ):
        entries = stack.of_type(resource_type).values()
        lengths = [len(entry[key]) for entry in entries if key in entry]
        assert lengths, resource_type
        assert max(lengths) <= most
