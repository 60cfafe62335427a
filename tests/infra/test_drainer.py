"""The interruption queue, what may fill it, and how it is emptied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firstbell.settings import parse_cluster
from infra.operator_file import load, resolve
from tests.infra import documents
from tests.infra.stacks import Synthesized, synthesize

QUEUE = "firstbell-hub-interruption"


def queue(stack: Synthesized, name: str = QUEUE) -> dict[str, Any]:
    return stack.one("AWS::SQS::Queue", QueueName=name)


def rules(stack: Synthesized) -> list[dict[str, Any]]:
    """The rules whose target is the interruption queue."""
    queue_id = stack.logical_id("AWS::SQS::Queue", QueueName=QUEUE)
    return [
        rule
        for rule in stack.of_type("AWS::Events::Rule").values()
        if rule["Targets"][0]["Arn"] == {"Fn::GetAtt": [queue_id, "Arn"]}
    ]


def pattern(stack: Synthesized, detail_type: str) -> dict[str, Any]:
    [found] = [r["EventPattern"] for r in rules(stack) if detail_type in r["EventPattern"]["detail-type"]]
    assert isinstance(found, dict)
    return found


def test_visibility_is_six_times_the_functions_timeout_and_nothing_is_delayed(shipped: Synthesized) -> None:
    """Case 64."""
    function = shipped.one("AWS::Lambda::Function", FunctionName=QUEUE)
    assert function["Timeout"] == 15
    assert queue(shipped)["VisibilityTimeout"] >= 6 * function["Timeout"]
    assert queue(shipped).get("DelaySeconds", 0) == 0


def test_what_nobody_can_work_on_is_kept_for_two_weeks(shipped: Synthesized) -> None:
    """Case 64: a dead-letter queue with a sane maxReceiveCount."""
    redrive = queue(shipped)["RedrivePolicy"]
    dead_letters = shipped.of_type("AWS::SQS::Queue")[redrive["deadLetterTargetArn"]["Fn::GetAtt"][0]]
    assert 5 <= redrive["maxReceiveCount"] <= 20
    assert dead_letters["MessageRetentionPeriod"] == 14 * 24 * 3600
    assert dead_letters["SqsManagedSseEnabled"] is True
    assert queue(shipped)["SqsManagedSseEnabled"] is True


def test_only_failed_records_come_back(shipped: Synthesized) -> None:
    """Case 65."""
    mapping = shipped.one("AWS::Lambda::EventSourceMapping")
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BatchSize"] == 10
    assert "MaximumBatchingWindowInSeconds" not in mapping


def test_only_our_own_rules_may_fill_the_queue(shipped: Synthesized) -> None:
    queue_id = shipped.logical_id("AWS::SQS::Queue", QueueName=QUEUE)
    policy = shipped.one("AWS::SQS::QueuePolicy", Queues=[{"Ref": queue_id}])
    sources = set()
    for statement in policy["PolicyDocument"]["Statement"]:
        if statement["Effect"] == "Deny":
            assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
            continue
        assert statement["Principal"] == {"Service": "events.amazonaws.com"}
        sources.add(statement["Condition"]["ArnEquals"]["aws:SourceArn"]["Fn::GetAtt"][0])
    ours = {logical_id for logical_id, rule in shipped.of_type("AWS::Events::Rule").items() if rule in rules(shipped)}
    assert sources == ours
    assert len(ours) == 7


@pytest.mark.parametrize(
    ("detail_type", "source"),
    [
        ("EC2 Spot Instance Interruption Warning", "aws.ec2"),
        ("EC2 Instance Rebalance Recommendation", "aws.ec2"),
        ("EC2 Capacity Reservation Instance Interruption Warning", "aws.ec2"),
        ("Capacity Block Reservation Expiration Warning", "aws.ec2"),
        ("EC2 Instance-terminate Lifecycle Action", "aws.autoscaling"),
        ("AWS Health Event", "aws.health"),
        ("EC2 Instance State-change Notification", "aws.ec2"),
        ("Drill", "firstbell.drill"),
    ],
)
def test_every_kind_of_notice_has_a_rule(shipped: Synthesized, detail_type: str, source: str) -> None:
    assert pattern(shipped, detail_type)["source"] == [source]


def test_only_scheduled_changes_of_ec2_are_let_in(shipped: Synthesized) -> None:
    """Case 4: the rule filters service and category both."""
    detail = {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]}
    assert pattern(shipped, "AWS Health Event")["detail"] == detail


def test_only_states_that_take_an_instance_away_are_let_in(shipped: Synthesized) -> None:
    """Case 32."""
    states = pattern(shipped, "EC2 Instance State-change Notification")["detail"]["state"]
    assert set(states) == {"stopping", "stopped", "shutting-down", "terminated"}


def test_only_the_pools_groups_are_listened_to() -> None:
    pools = [documents.pool(), {**documents.pool("managed"), "asg": None, "nodegroup": "workers"}]
    stack = synthesize(documents.text(documents.cluster(pools=pools)))
    groups = pattern(stack, "EC2 Instance-terminate Lifecycle Action")["detail"]["AutoScalingGroupName"]
    assert groups == ["users-group", {"prefix": "eks-workers-"}]


def test_drills_come_from_our_own_bus_and_all_else_from_the_default_one(shipped: Synthesized) -> None:
    for rule in rules(shipped):
        own = rule["EventPattern"]["detail-type"] == ["Drill"]
        assert ("EventBusName" in rule) == own
        assert "DeadLetterConfig" in rule["Targets"][0]


def test_a_created_group_waits_for_its_drains(shipped: Synthesized) -> None:
    hooks = list(shipped.of_type("AWS::AutoScaling::LifecycleHook").values())
    assert len(hooks) == len(shipped.of_type("AWS::AutoScaling::AutoScalingGroup"))
    for hook in hooks:
        assert hook["LifecycleHookName"] == "firstbell-drain"
        assert hook["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING"
        assert hook["DefaultResult"] == "CONTINUE"


def test_a_long_drain_is_not_taken_for_a_loop(shipped: Synthesized) -> None:
    """Lambda ends a chain of some 16 invocations through one queue, unless the function says that it is meant."""
    assert shipped.one("AWS::Lambda::Function", FunctionName=QUEUE)["RecursiveLoop"] == "Allow"


def test_the_function_knows_its_queues(shipped: Synthesized) -> None:
    variables = shipped.one("AWS::Lambda::Function", FunctionName=QUEUE)["Environment"]["Variables"]
    assert variables["FIRSTBELL_QUEUE_URL"] == {"Ref": shipped.logical_id("AWS::SQS::Queue", QueueName=QUEUE)}
    dead_letters = shipped.logical_id("AWS::SQS::Queue", QueueName=f"{QUEUE}-dead-letters")
    assert variables["FIRSTBELL_DEAD_LETTER_URL"] == {"Ref": dead_letters}


def test_a_pools_interruption_policy_reaches_the_function(tmp_path: Path) -> None:
    policy = {
        "spot": "cordon",
        "rebalance": "drain",
        "rebalance_ttl_minutes": 7,
        "at_deadline": "leave",
        "scheduled_change": {"before_minutes": 90},
        "hook": "their-drain",
    }
    written = tmp_path / "firstbell.yaml"
    written.write_text(documents.text(documents.cluster(pools=[{**documents.pool(), "interruption": policy}])))
    [pool] = parse_cluster(json.loads(json.dumps(resolve(load(written), "hub")))).pools
    assert (pool.interruption.spot, pool.interruption.rebalance, pool.interruption.at_deadline) == (
        "cordon",
        "drain",
        "leave",
    )
    assert (pool.interruption.rebalance_ttl_minutes, pool.interruption.before_minutes) == (7, 90)
    assert pool.interruption.hook == "their-drain"
