"""Where alarms go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions

from infra import names

if TYPE_CHECKING:
    from constructs import Construct

    from infra.operator_file import ClusterEntry


def alarm_topic(scope: Construct, cluster: ClusterEntry) -> sns.ITopic:
    """The operator's own topic, or a new one, with the operator's address where there is one."""
    notify = cluster.notify
    if notify is not None and notify.topic is not None:
        return sns.Topic.from_topic_arn(scope, "Topic", notify.topic)
    topic = sns.Topic(scope, "Topic", topic_name=f"{names.stack_name(cluster.name)}-alarms", enforce_ssl=True)
    # A policy of one's own replaces the one that lets the account publish, so alarms have to be let in by name.
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            sid="Alarms",
            actions=["sns:Publish"],
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            resources=[topic.topic_arn],
            conditions={"StringEquals": {"aws:SourceAccount": Stack.of(scope).account}},
        )
    )
    if notify is not None and notify.email is not None:
        topic.add_subscription(subscriptions.EmailSubscription(notify.email))
    return topic
