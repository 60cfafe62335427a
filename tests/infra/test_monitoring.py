"""What an operator is told, and whether anything could ever tell it."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest

from firstbell import outcomes
from firstbell.telemetry import METRICS, NAMESPACE
from infra.monitoring import document
from infra.monitoring.conditions import CONDITIONS
from infra.monitoring.queries import search, select
from tests.infra import documents
from tests.infra.named_metrics import Named, dashboard, in_expression, of_alarms, of_dashboard
from tests.infra.stacks import ROOT, Synthesized, synthesize

PER_FUNCTION = {
    f"{name}-{what}"
    for name in ("prescale", "tick", "interruption", "idle")
    for what in ("errors", "throttled", "slow")
}
FROM_AWS = {
    ("AWS/Lambda", "Errors"): "FunctionName",
    ("AWS/Lambda", "Throttles"): "FunctionName",
    ("AWS/Lambda", "Duration"): "FunctionName",
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): "QueueName",
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): "QueueName",
    ("AWS/AutoScaling", "GroupInServiceInstances"): "AutoScalingGroupName",
}
"""Metrics of AWS itself and their one dimension:
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html,
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html,
https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-metrics.html"""


def alarm(stack: Synthesized, name: str) -> dict[str, Any]:
    return stack.one("AWS::CloudWatch::Alarm", AlarmName=f"firstbell-hub-{name}")


def alarm_names(stack: Synthesized) -> set[str]:
    return {
        entry["AlarmName"].removeprefix("firstbell-hub-") for entry in stack.of_type("AWS::CloudWatch::Alarm").values()
    }


def is_emitted(named: Named) -> bool:
    """Whether anything emits this metric with exactly these dimensions. That the table is emitted is a unit test."""
    if named.namespace == NAMESPACE:
        metric = METRICS.get(named.metric)
        return metric is not None and named.dimensions == {"cluster", *metric.dimensions}
    return named.dimensions == {FROM_AWS.get((named.namespace, named.metric))}


def test_every_condition_has_its_alarm(shipped: Synthesized) -> None:
    conditions = {condition.name for condition in CONDITIONS}
    beside = {"signals-lost", "interruptions-lost", "interruption-waiting"}
    assert alarm_names(shipped) == conditions | beside | PER_FUNCTION


def test_alarms_and_widgets_name_only_what_is_emitted(shipped: Synthesized) -> None:
    named = [*of_alarms(shipped), *of_dashboard(shipped)]
    assert len({one.where for one in named}) > 30
    assert [one for one in named if not is_emitted(one)] == []


@pytest.mark.parametrize(
    "expression",
    [
        'SELECT SUM(PodsShort) FROM SCHEMA("Firstbell", "cluster")',
        'SELECT SUM(PodsShrot) FROM SCHEMA("Firstbell", "cluster", "pool")',
        "SEARCH('{Firstbell,cluster,pool,reason} MetricName=\"PodsShort\" cluster=\"hub\"', 'Sum', 60)",
    ],
)
def test_a_wrong_name_or_dimension_would_be_found(expression: str) -> None:
    (named,) = in_expression("somewhere", expression)
    assert not is_emitted(named)


@pytest.mark.parametrize("ask", [lambda name: select(name, "SUM", "hub"), lambda name: search(name, "Sum", "hub", 60)])
def test_a_metric_that_the_table_does_not_know_cannot_be_asked_for(ask: Any) -> None:
    with pytest.raises(KeyError):
        ask("PodsShrot")


def test_every_metric_is_on_the_dashboard(shipped: Synthesized) -> None:
    shown = {one.metric for one in of_dashboard(shipped) if one.namespace == NAMESPACE}
    assert shown == set(METRICS)


def test_functions_and_queues_that_are_watched_are_the_stacks_own(shipped: Synthesized) -> None:
    resources = shipped.template["Resources"]
    for one in of_alarms(shipped):
        for value in one.values:
            if isinstance(value, dict):
                assert resources[value.get("Ref") or value["Fn::GetAtt"][0]]["Type"] in (
                    "AWS::Lambda::Function",
                    "AWS::SQS::Queue",
                )


def test_groups_that_are_made_here_report_their_instances(shipped: Synthesized) -> None:
    groups = shipped.of_type("AWS::AutoScaling::AutoScalingGroup").values()
    reporting = {group["AutoScalingGroupName"] for group in groups if group["MetricsCollection"]}
    shown = {one.values[0] for one in of_dashboard(shipped) if one.namespace == "AWS/AutoScaling"}
    assert shown == reporting


def test_every_alarm_says_in_words_what_happened_and_tells_the_operator(shipped: Synthesized) -> None:
    topic = shipped.logical_id("AWS::SNS::Topic")
    entries = [
        *shipped.of_type("AWS::CloudWatch::Alarm").values(),
        *shipped.of_type("AWS::CloudWatch::CompositeAlarm").values(),
    ]
    for entry in entries:
        assert entry["AlarmActions"] == [{"Ref": topic}]
        words = json.dumps(entry["AlarmDescription"])
        assert len(words) > 150, entry["AlarmName"]
        assert re.search(r"[Ss]tudents?|Nothing", words), f"{entry['AlarmName']} does not say what students feel"
        assert (
            len(words) < 1024
        )  # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
    assert shipped.one("AWS::SNS::Subscription")["Endpoint"] == "platform@example.edu"


def test_alarms_may_publish_to_the_topic_that_is_made_for_them(shipped: Synthesized) -> None:
    statements = shipped.one("AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    allowed = [statement for statement in statements if statement["Effect"] == "Allow"]
    assert [(s["Action"], s["Principal"]) for s in allowed] == [
        ("sns:Publish", {"Service": "cloudwatch.amazonaws.com"})
    ]
    assert allowed[0]["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_alarms_go_to_a_topic_that_the_operator_has() -> None:
    arn = "arn:aws:sns:us-west-2:111122223333:ops"
    stack = synthesize(documents.text(documents.cluster(notify={"topic": arn})))
    assert not stack.of_type("AWS::SNS::Topic")
    assert all(entry["AlarmActions"] == [arn] for entry in stack.of_type("AWS::CloudWatch::Alarm").values())


def test_only_what_has_to_run_by_itself_alarms_when_nothing_is_measured(shipped: Synthesized) -> None:
    breaching = {
        entry["AlarmName"]
        for entry in shipped.of_type("AWS::CloudWatch::Alarm").values()
        if entry["TreatMissingData"] != "notBreaching"
    }
    assert breaching == {"firstbell-hub-tick-stopped", "firstbell-hub-idle-stopped"}
    stopped = alarm(shipped, "tick-stopped")
    assert (stopped["TreatMissingData"], stopped["ComparisonOperator"]) == ("breaching", "LessThanThreshold")


def test_delayed_messages_of_running_drains_wake_nobody(shipped: Synthesized) -> None:
    """A pass that is due in a minute is a message of that age: only what could be received and is not counts."""
    queries = {query["Id"]: query for query in alarm(shipped, "interruption-waiting")["Metrics"]}
    (expression,) = [query["Expression"] for query in queries.values() if "Expression" in query]
    assert expression == "IF(waiting > 0, age, 0)"
    assert queries["waiting"]["MetricStat"]["Metric"]["MetricName"] == "ApproximateNumberOfMessagesVisible"
    assert queries["age"]["MetricStat"]["Metric"]["MetricName"] == "ApproximateAgeOfOldestMessage"


@pytest.mark.parametrize("capability", ["prescale", "tick", "interruption", "idle"])
def test_a_slow_function_is_heard_of_before_its_timeout(shipped: Synthesized, capability: str) -> None:
    timeout = shipped.one("AWS::Lambda::Function", FunctionName=f"firstbell-hub-{capability}")["Timeout"]
    assert alarm(shipped, f"{capability}-slow")["Threshold"] == 0.8 * timeout * 1000


def test_one_alarm_is_over_all_that_students_feel(shipped: Synthesized) -> None:
    composite = shipped.one("AWS::CloudWatch::CompositeAlarm", AlarmName="firstbell-hub-students-affected")
    rule = json.dumps(composite["AlarmRule"])
    resources = shipped.of_type("AWS::CloudWatch::Alarm")
    under = {resources[name]["AlarmName"].removeprefix("firstbell-hub-") for name in resources if name in rule}
    assert under == {condition.name for condition in CONDITIONS if condition.students}
    assert under == {"pods-short", "reservation-late", "pods-pending", "drain-late", "pods-forced"}


def test_the_dashboard_fits_its_grid_and_begins_with_the_morning(shipped: Synthesized) -> None:
    widgets = dashboard(shipped)["widgets"]
    assert "a morning at a glance" in widgets[0]["properties"]["markdown"]
    assert all(widget["x"] + widget["width"] <= 24 for widget in widgets)
    headings = [w["properties"]["markdown"].split("\n")[0] for w in widgets if w["type"] == "text"]
    assert [heading.split(":")[-1].strip("# ") for heading in headings] == [
        "a morning at a glance",
        "Interruptions",
        "Money",
        "Health of Firstbell itself",
    ]


def test_saved_queries_ask_for_fields_that_lines_have(shipped: Synthesized) -> None:
    fields = {
        field.name
        for kind in vars(outcomes).values()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind)
        for field in dataclasses.fields(kind)
    }
    queries = shipped.of_type("AWS::Logs::QueryDefinition").values()
    assert {query["Name"] for query in queries} == {
        "Firstbell/hub/why did this pool not scale",
        "Firstbell/hub/what happened to this node",
    }
    groups = {group["LogGroupName"] for group in shipped.of_type("AWS::Logs::LogGroup").values()}
    for query in queries:
        assert set(query["LogGroupNames"]) <= groups
        assert set(re.findall(r"outcome\.(\w+)", query["QueryString"])) <= fields
        assert set(re.findall(r"ispresent\((\w+)\)", query["QueryString"])) <= set(METRICS)


def test_what_the_words_send_people_to_exists(shipped: Synthesized) -> None:
    saved = {query["Name"].rsplit("/", 1)[1] for query in shipped.of_type("AWS::Logs::QueryDefinition").values()}
    named = {name for condition in CONDITIONS for name in re.findall(r"query '([^']+)'", condition.words)}
    assert named
    assert named <= saved


def test_the_document_of_metrics_is_what_the_code_says() -> None:
    kept = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert kept == document.text(), "python -m infra.monitoring.document write"
