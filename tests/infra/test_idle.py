"""The idle function as it is deployed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.infra import documents
from tests.infra.stacks import synthesize

if TYPE_CHECKING:
    from tests.infra.stacks import Synthesized

REMOVE = "autoscaling:TerminateInstanceInAutoScalingGroup"
LOWER = "autoscaling:UpdateAutoScalingGroup"


def statements(stack: Synthesized, action: str) -> list[dict[str, Any]]:
    """Of every identity policy that allows the action."""
    return [
        statement
        for policy in stack.of_type("AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    ]


def a_managed_pool() -> Synthesized:
    managed = {**documents.pool("m"), "asg": None, "nodegroup": "workers"}
    return synthesize(documents.text(documents.cluster(default_pool="m", pools=[managed])))


def test_idle_nodes_are_looked_at_every_five_minutes_by_a_plain_rate(shipped: Synthesized) -> None:
    schedule = shipped.one("AWS::Scheduler::Schedule", Name="firstbell-hub-idle")
    assert schedule["ScheduleExpression"] == "rate(5 minutes)"
    assert schedule["Target"]["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}
    target = schedule["Target"]["Arn"]["Fn::GetAtt"][0]
    assert shipped.of_type("AWS::Lambda::Function")[target]["FunctionName"] == "firstbell-hub-idle"


def test_a_run_ends_before_the_next_one_begins(shipped: Synthesized) -> None:
    function = shipped.one("AWS::Lambda::Function", FunctionName="firstbell-hub-idle")
    assert function["Timeout"] < 300


def test_a_cluster_without_quiet_windows_can_still_give_back_what_it_lowered() -> None:
    stack = synthesize(documents.text())
    assert stack.one("AWS::Lambda::Function", FunctionName="firstbell-hub-idle")


def test_only_the_pools_groups_lose_members_and_only_to_idle(shipped: Synthesized) -> None:
    for action in (REMOVE, LOWER):
        [statement] = statements(shipped, action)
        ending = [json.dumps(resource).rsplit("/", 1)[1].rstrip('"]}') for resource in statement["Resource"]]
        assert sorted(ending) == [
            "firstbell-hub-dask-worker",
            "firstbell-hub-notebook-m5-2xlarge",
            "firstbell-hub-notebook-m5-xlarge",
        ]


def test_the_minimum_of_a_managed_node_group_goes_through_eks_alone() -> None:
    stack = a_managed_pool()
    assert not statements(stack, LOWER)
    [remove] = statements(stack, REMOVE)
    assert remove["Condition"]["StringEquals"]["aws:ResourceTag/eks:nodegroup-name"] == ["workers"]
    [change] = statements(stack, "eks:UpdateNodegroupConfig")
    assert json.dumps(change["Resource"]).endswith(':nodegroup/hub/workers/*"]]}')


def test_no_group_can_be_given_another_maximum_or_another_anything(shipped: Synthesized) -> None:
    """IAM cannot tell MinSize from MaxSize in UpdateAutoScalingGroup; only idle has the action at all."""
    assert len(statements(shipped, LOWER)) == 1
    assert not statements(shipped, "autoscaling:DeleteAutoScalingGroup")
