"""Questions that operators ask of the logs, kept in the CloudWatch console under Firstbell/<cluster>/.

What a run did is in two kinds of lines: outcomes as they were published (`outcome.*`), and embedded metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_logs as logs

from infra.monitoring.conditions import WHAT_HAPPENED_TO_NODE, WHY_NOT_SCALED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constructs import Construct

    from infra.operator_file import ClusterEntry

_NOT_SCALED = """# Put the pool's name in both places.
fields @timestamp, @log
| filter outcome.pool = "{pool}" or pool = "{pool}"
| filter message in ["Capacity Requested", "Capacity Short", "Signal Rejected", "pool could not be brought to size"]
    or ispresent(LaunchFailures) or ispresent(QuotaReached) or ispresent(UnitsRaised) or ispresent(UnitsWithdrawn)
    or ispresent(OtherWriterUndone) or ispresent(HeadroomUnknown) and HeadroomUnknown > 0
| display @timestamp, message, outcome.reference, outcome.pods_short, outcome.reason, outcome.detail, outcome.remedy,
    outcome.desired_before, outcome.desired_after, outcome.headroom_known, reason, UnitsRaised, UnitsWithdrawn,
    LaunchFailures, QuotaReached, OtherWriterUndone, HeadroomUnknown, exception
| sort @timestamp asc
| limit 500"""

_NODE = """# Put the instance's id in all three places.
fields @timestamp, @log
| filter instance_id = "{instance}" or outcome.instance_id = "{instance}" or @message like "{instance}"
| display @timestamp, message, outcome.node, outcome.kind, outcome.deadline, outcome.ending, outcome.evicted,
    outcome.seconds_left, outcome.drill, reason, error, exception, @message
| sort @timestamp asc
| limit 500"""


def save_queries(scope: Construct, cluster: ClusterEntry, log_groups: Sequence[str]) -> None:
    texts = {
        WHY_NOT_SCALED: _NOT_SCALED.format(pool=cluster.default_pool),
        WHAT_HAPPENED_TO_NODE: _NODE.format(instance="i-0123456789abcdef0"),
    }
    for name, text in texts.items():
        logs.CfnQueryDefinition(
            scope,
            name.title().replace(" ", ""),
            name=f"Firstbell/{cluster.name}/{name}",
            query_string=text,
            log_group_names=list(log_groups),
        )
