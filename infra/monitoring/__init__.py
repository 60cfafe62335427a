"""What is known about Firstbell from outside: alarms, a dashboard, saved queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs import Construct

from infra import names
from infra.monitoring.alarms import Alarms
from infra.monitoring.dashboard import add_dashboard
from infra.monitoring.saved_queries import save_queries
from infra.monitoring.topic import alarm_topic
from infra.monitoring.widgets import Figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_sqs as sqs

    from infra.function import CapabilityFunction
    from infra.operator_file import ClusterEntry

__all__ = ["Monitoring"]


class Monitoring(Construct):
    """Everything that an operator watches of one cluster's Firstbell."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: ClusterEntry,
        functions: Mapping[str, CapabilityFunction],
        signals_lost: sqs.IQueue,
        interruptions: sqs.IQueue,
        interruptions_lost: sqs.IQueue,
    ) -> None:
        super().__init__(scope, construct_id)
        alarms = Alarms(self, "Alarms", cluster=cluster.name, topic=alarm_topic(self, cluster))
        alarms.watch_conditions()
        alarms.watch_dead_letters(signals_lost, interruptions_lost)
        alarms.watch_queue(interruptions)
        for capability, function in functions.items():
            alarms.watch_function(capability, function.function)
        alarms.over_students()
        add_dashboard(
            self,
            cluster,
            Figures(cluster.name),
            alarms=alarms.all,
            functions={capability: function.function for capability, function in functions.items()},
            queues=[interruptions, interruptions_lost, signals_lost],
        )
        save_queries(self, cluster, [f"/aws/lambda/{names.function_name(cluster.name, name)}" for name in functions])
