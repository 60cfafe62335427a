"""Schedules that start functions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.functional.localcloud_aws.conftest import ACCOUNT, REGION, StartedCloud
from tests.functional.localcloud_aws.functions import eventually, make_function, unique
from tests.functional.localcloud_aws.test_invocations import log_lines

SEEN = "def handler(event, context): print('seen', event)\n"


def function_arn(name: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def schedule(cloud: StartedCloud, function: str, expression: str) -> None:
    cloud.client("scheduler").create_schedule(
        Name=unique("schedule"),
        ScheduleExpression=expression,
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={
            "Arn": function_arn(function),
            "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/scheduler",
            "Input": json.dumps({"reason": "tick"}),
        },
    )


def test_a_schedule_starts_a_function_with_its_own_input(cloud: StartedCloud) -> None:
    name = make_function(cloud, SEEN)
    soon = datetime.now(UTC) + timedelta(seconds=2)
    schedule(cloud, name, f"at({soon:%Y-%m-%dT%H:%M:%S})")
    assert eventually(lambda: log_lines(cloud, name, "seen")) == ["seen {'reason': 'tick'}"]


@pytest.mark.long
def test_rates_of_the_scheduler_and_of_a_rule_fire_each_minute(cloud: StartedCloud) -> None:
    by_schedule, by_rule = make_function(cloud, SEEN), make_function(cloud, SEEN)
    schedule(cloud, by_schedule, "rate(1 minute)")
    events, rule = cloud.client("events"), unique("rate")
    rule_arn = events.put_rule(Name=rule, ScheduleExpression="rate(1 minute)")["RuleArn"]
    cloud.client("lambda").add_permission(
        FunctionName=by_rule,
        StatementId="rule",
        Action="lambda:InvokeFunction",
        Principal="events.amazonaws.com",
        SourceArn=rule_arn,
    )
    events.put_targets(Rule=rule, Targets=[{"Id": "f", "Arn": function_arn(by_rule)}])

    def both_fired_twice() -> bool:
        return all(len(log_lines(cloud, name, "seen")) >= 2 for name in (by_schedule, by_rule))

    eventually(both_fired_twice, timeout_seconds=150)
