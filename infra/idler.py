"""Idle to zero: every five minutes, whatever the operator's windows are; zones and days are the function's business.

It runs for every cluster, also where no pool is to go any more: what it lowered or cordoned has to be given back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from constructs import Construct

from infra import names, permissions
from infra.function import CapabilityFunction
from infra.schedule import Rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aws_cdk import aws_lambda as lambda_

    from infra.operator_file import ClusterEntry
    from infra.permissions import Permission

TIMEOUT_SECONDS = 240
"""Less than the five minutes to the next run; a large pool's nodes go one after another."""
MEMORY_MIB = 1024
"""As for sizing: the same nodes and pods are read."""


class Idler(Construct):
    """The function and its schedule. `sizing` is what bringing a pool to size takes: a signal may come meanwhile."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: ClusterEntry,
        code: lambda_.Code,
        environment: Mapping[str, str],
        sizing: Sequence[Permission],
    ) -> None:
        super().__init__(scope, construct_id)
        self.handler = CapabilityFunction(
            self,
            "Handler",
            capability="idle",
            cluster=cluster,
            code=code,
            environment=environment,
            permissions=[
                *sizing,
                permissions.describe_refreshes(),
                *permissions.remove_members(self, cluster),
                *permissions.change_nodegroups(self, cluster),
            ],
            timeout=Duration.seconds(TIMEOUT_SECONDS),
            memory_mib=MEMORY_MIB,
        )
        Rate(
            self,
            "EveryFiveMinutes",
            name=names.function_name(cluster.name, "idle"),
            description=f"Firstbell: looks at the idle nodes of {cluster.name}",
            expression="rate(5 minutes)",
            handler=self.handler,
        )
