"""What tick may do about interruptions."""

from __future__ import annotations

import json
from typing import Any

from tests.infra.stacks import Synthesized

QUEUE = "firstbell-hub-interruption"


def statements(stack: Synthesized, action: str) -> dict[str, dict[str, Any]]:
    """Policy name -> its statement that allows the action."""
    return {
        policy["PolicyName"]: statement
        for policy in stack.of_type("AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }


def test_only_tick_ends_instances_and_only_those_of_the_cluster(shipped: Synthesized) -> None:
    """Its group's tag goes when an instance is detached; the tag that EKS asks of self-managed nodes stays."""
    [(policy, statement)] = statements(shipped, "ec2:TerminateInstances").items()
    assert policy.startswith("Tick")
    assert statement["Condition"] == {"StringEquals": {"aws:ResourceTag/kubernetes.io/cluster/hub": "owned"}}
    assert json.dumps(statement["Resource"]).rstrip('"]}').endswith(":instance/*")


def test_created_groups_give_their_instances_the_tag_that_tick_tells_survivors_by(shipped: Synthesized) -> None:
    groups = shipped.of_type("AWS::AutoScaling::AutoScalingGroup").values()
    assert groups
    for group in groups:
        assert {"Key": "kubernetes.io/cluster/hub", "Value": "owned", "PropagateAtLaunch": True} in group["Tags"]


def test_tick_puts_due_changes_into_the_interruption_queue_and_nowhere_else(shipped: Synthesized) -> None:
    queue = shipped.logical_id("AWS::SQS::Queue", QueueName=QUEUE)
    tick = shipped.one("AWS::Lambda::Function", FunctionName="firstbell-hub-tick")
    assert tick["Environment"]["Variables"]["FIRSTBELL_QUEUE_URL"] == {"Ref": queue}
    [statement] = [s for name, s in statements(shipped, "sqs:SendMessage").items() if name.startswith("Tick")]
    assert statement["Resource"] == {"Fn::GetAtt": [queue, "Arn"]}


def test_tick_reads_drains_and_forgets_what_it_has_looked_after(shipped: Synthesized) -> None:
    for action in ("dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:Query", "dynamodb:PutItem"):
        assert [name for name in statements(shipped, action) if name.startswith("Tick")], action
