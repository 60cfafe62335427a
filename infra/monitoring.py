"""Alarms, in words that help the one who is woken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra import names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_sqs as sqs

    from infra.function import CapabilityFunction
    from infra.operator_file import ClusterEntry


class Monitoring(Construct):
    """What has to be known about Firstbell itself, sent to the operator's topic."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: ClusterEntry,
        functions: Mapping[str, CapabilityFunction],
        failures: sqs.IQueue,
    ) -> None:
        super().__init__(scope, construct_id)
        self._cluster = cluster
        self._action = actions.SnsAction(self._topic())
        self._alarm(
            "signals-lost",
            failures.metric_approximate_number_of_messages_visible(period=Duration.minutes(1), statistic="Maximum"),
            "A demand signal could not be handled, three times over. Its class may meet a cold pool. "
            f"Read the message in the queue {failures.queue_name}, mend what it says, have the portal signal again.",
        )
        for capability, function in functions.items():
            self._alarm(
                f"{capability}-errors",
                function.function.metric_errors(period=Duration.minutes(1)),
                f"The function {capability} fails. Students feel nothing yet, but signals or reservations may not be "
                f"looked after. Read the last error in /aws/lambda/{names.function_name(cluster.name, capability)}.",
                minutes=5,
                of_them=3,
            )
        self._alarm(
            "tick-stopped",
            functions["tick"].function.metric_invocations(period=Duration.minutes(1), statistic="Sum"),
            "The tick has not run for five minutes. Reservations do not start, and nothing is released. "
            f"See whether the schedule {names.function_name(cluster.name, 'tick')} is enabled and its role may invoke.",
            minutes=5,
            when_absent=True,
        )

    def _topic(self) -> sns.ITopic:
        notify = self._cluster.notify
        if notify is not None and notify.topic is not None:
            return sns.Topic.from_topic_arn(self, "Topic", notify.topic)
        topic = sns.Topic(self, "Topic", topic_name=f"{names.stack_name(self._cluster.name)}-alarms", enforce_ssl=True)
        if notify is not None and notify.email is not None:
            topic.add_subscription(subscriptions.EmailSubscription(notify.email))
        return topic

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.Metric,
        words: str,
        *,
        minutes: int = 1,
        of_them: int | None = None,
        when_absent: bool = False,
    ) -> None:
        """Alarms at 1 or more a minute; with `when_absent` at less, and when there is nothing to measure."""
        comparison = cloudwatch.ComparisonOperator
        missing = cloudwatch.TreatMissingData
        alarm = metric.create_alarm(
            self,
            name,
            alarm_name=f"{names.stack_name(self._cluster.name)}-{name}",
            alarm_description=words,
            threshold=1,
            comparison_operator=(
                comparison.LESS_THAN_THRESHOLD if when_absent else comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            treat_missing_data=missing.BREACHING if when_absent else missing.NOT_BREACHING,
            evaluation_periods=minutes,
            datapoints_to_alarm=of_them,
        )
        alarm.add_alarm_action(self._action)
