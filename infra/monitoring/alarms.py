"""Alarms, in words that help the one who is woken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

from firstbell.telemetry import METRICS, NAMESPACE
from infra import names
from infra.monitoring.conditions import CONDITIONS, Condition
from infra.monitoring.queries import select

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sns as sns
    from aws_cdk import aws_sqs as sqs

OLDEST_NOTICE_SECONDS = 30
NEAR_TIMEOUT = 0.8
MINUTE = Duration.minutes(1)


class Alarms(Construct):
    """Every alarm of a cluster's stack, and the one over those that students feel."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str, topic: sns.ITopic) -> None:
        super().__init__(scope, construct_id)
        self._cluster = cluster
        self._action = actions.SnsAction(topic)
        self.all: list[cloudwatch.IAlarm] = []
        self._felt: list[cloudwatch.IAlarm] = []

    def watch_conditions(self) -> None:
        """Firstbell's own metrics: one alarm a condition, which names the pools that it is about."""
        for condition in CONDITIONS:
            alarm = self._watch(condition)
            if condition.students:
                self._felt.append(alarm)

    def watch_dead_letters(self, signals: sqs.IQueue, interruptions: sqs.IQueue) -> None:
        self._alarm(
            "signals-lost",
            _visible(signals, "Maximum"),
            "A demand signal could not be handled, three times over. Students of its class may wait for nodes. "
            f"Read the message in the queue {signals.queue_name}, mend what it says, have the portal signal again.",
        )
        self._alarm(
            "interruptions-lost",
            _visible(interruptions, "Maximum"),
            "A notice that an instance goes was not understood, or could not be worked on. Students on that instance "
            f"may lose their work. Read the message in the queue {interruptions.queue_name} and drain the node that "
            "it names by hand (`kubectl drain`).",
        )

    def watch_queue(self, queue: sqs.IQueue) -> None:
        """Passes of a drain that is waiting are delayed messages, and no reason to be woken: only what may be received
        and is not counts."""
        waits = cloudwatch.MathExpression(
            expression="IF(waiting > 0, age, 0)",
            using_metrics={
                "waiting": _visible(queue, "Minimum"),
                "age": queue.metric_approximate_age_of_oldest_message(period=MINUTE, statistic="Maximum"),
            },
            period=MINUTE,
            label="age of the oldest notice that waits",
        )
        self._alarm(
            "interruption-waiting",
            waits,
            f"A notice that an instance goes has waited for more than {OLDEST_NOTICE_SECONDS} s, of the two minutes "
            "that Spot gives. Students on it may lose their work. See whether the interruption function is throttled "
            "or its trigger is disabled. Drains go on by themselves once this is mended.",
            threshold=OLDEST_NOTICE_SECONDS,
        )

    def watch_function(self, capability: str, function: lambda_.Function) -> None:
        log = f"/aws/lambda/{names.function_name(self._cluster, capability)}"
        self._alarm(
            f"{capability}-errors",
            function.metric_errors(period=MINUTE, statistic="Sum"),
            f"The function {capability} fails. Students feel nothing yet, but what it looks after may not be looked "
            f"after. Read the last error in {log}.",
            periods=5,
            breaching=3,
        )
        self._alarm(
            f"{capability}-throttled",
            function.metric_throttles(period=MINUTE, statistic="Sum"),
            f"Lambda does not run {capability} as often as it is called: the account's concurrency is used up. "
            "Students may wait for nodes. Raise 'Concurrent executions' in Service Quotas (AWS Lambda), or find the "
            "function that uses it up.",
            periods=5,
            breaching=2,
        )
        timeout_ms = (function.timeout or Duration.seconds(3)).to_milliseconds()
        self._alarm(
            f"{capability}-slow",
            function.metric_duration(period=MINUTE, statistic="Maximum"),
            f"The function {capability} runs for more than {NEAR_TIMEOUT:.0%} of its timeout. Students feel nothing "
            f"yet; a run that is cut off is done again. See in its trace or in {log} what it waits for: usually the "
            "Kubernetes API, or Auto Scaling.",
            threshold=NEAR_TIMEOUT * timeout_ms,
            periods=5,
            breaching=2,
        )

    def over_students(self) -> None:
        alarm = cloudwatch.CompositeAlarm(
            self,
            "students-affected",
            composite_alarm_name=self._name("students-affected"),
            alarm_description="Students are affected, or will be: pods are short of capacity, late or Pending, or "
            "work was lost with a node. They wait on the spawn page or lose their session. Look which of its alarms "
            "is up; each says what to do first.",
            alarm_rule=cloudwatch.AlarmRule.any_of(*self._felt),
        )
        alarm.add_alarm_action(self._action)
        self.all.insert(0, alarm)

    def _watch(self, condition: Condition) -> cloudwatch.Alarm:
        period = Duration.minutes(condition.period_minutes)
        if METRICS[condition.metric].dimensions:
            query = select(condition.metric, condition.statistic, self._cluster)
            metric: cloudwatch.IMetric = cloudwatch.MathExpression(
                expression=query, using_metrics={}, period=period, label=condition.metric
            )
        else:
            metric = cloudwatch.Metric(
                namespace=NAMESPACE,
                metric_name=condition.metric,
                dimensions_map={"cluster": self._cluster},
                statistic={"SUM": "Sum", "MAX": "Maximum"}[condition.statistic],
                period=period,
            )
        return self._alarm(
            condition.name,
            metric,
            condition.words,
            threshold=condition.threshold,
            periods=condition.periods,
            breaching=condition.breaching,
            when_absent=condition.when_absent,
        )

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        words: str,
        *,
        threshold: float = 1,
        periods: int = 1,
        breaching: int = 1,
        when_absent: bool = False,
    ) -> cloudwatch.Alarm:
        """Alarms at the threshold or more; with `when_absent` at less, and when there is nothing to measure.

        Everything else counts events, or is measured only while there is something to measure: there, nothing is well.
        """
        comparison = cloudwatch.ComparisonOperator
        missing = cloudwatch.TreatMissingData
        alarm = cloudwatch.Alarm(
            self,
            name,
            metric=metric,
            alarm_name=self._name(name),
            alarm_description=words,
            threshold=threshold,
            comparison_operator=(
                comparison.LESS_THAN_THRESHOLD if when_absent else comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            treat_missing_data=missing.BREACHING if when_absent else missing.NOT_BREACHING,
            evaluation_periods=periods,
            datapoints_to_alarm=breaching,
        )
        alarm.add_alarm_action(self._action)
        self.all.append(alarm)
        return alarm

    def _name(self, name: str) -> str:
        return f"{names.stack_name(self._cluster)}-{name}"


def _visible(queue: sqs.IQueue, statistic: str) -> cloudwatch.Metric:
    return queue.metric_approximate_number_of_messages_visible(period=MINUTE, statistic=statistic)
