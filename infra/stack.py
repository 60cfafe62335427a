"""Everything that Firstbell deploys for one cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, Duration, Environment, Stack

from infra import names, permissions
from infra.bundling import functions_code
from infra.bus import Bus
from infra.drainer import Drainer
from infra.function import CapabilityFunction
from infra.idler import Idler
from infra.ledger import Ledger
from infra.monitoring import Monitoring
from infra.operator_file import resolve
from infra.pools import Pools
from infra.prescaler import Prescaler
from infra.ticker import Ticker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from constructs import Construct

    from infra.operator_file import ClusterEntry, OperatorFile
    from infra.permissions import Permission
    from infra.wheels import Target

SIZING_MEMORY_MIB = 1024
"""CPU comes with memory: a whole vCPU at 1,769 MiB (docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
Sizing itself stays under 256 MiB, but reading 30,000 pods costs 11 s of a whole CPU (bench/kubernetes_client.py)."""


class FirstbellStack(Stack):
    """Bus, ledger, functions, their way into the cluster, the pools to make, and alarms."""

    def __init__(self, scope: Construct, *, file: OperatorFile, cluster: ClusterEntry, target: Target) -> None:
        super().__init__(
            scope,
            names.stack_name(cluster.name),
            env=Environment(region=cluster.region),
            description=f"Firstbell for the EKS cluster {cluster.name}",
        )
        bus = Bus(self, "Bus", cluster=cluster)
        ledger = Ledger(self, "Ledger", cluster=cluster.name)
        code = functions_code(resolve(file, cluster.name), target)
        environment = {"FIRSTBELL_BUS": bus.bus.event_bus_name, "FIRSTBELL_LEDGER": ledger.table.table_name}
        sizing = [
            permissions.describe_pools(),
            *permissions.change_groups(self, cluster, permissions.SIZING),
            *permissions.read_cluster(self, cluster),
            permissions.use_ledger(ledger.table.table_arn),
            permissions.publish_outcomes(bus.bus.event_bus_arn),
        ]

        drainer = Drainer(self, "Drainer", cluster=cluster, bus=bus.bus, table=ledger.table, code=code)

        def function(
            capability: str,
            timeout_seconds: int,
            *,
            environment: Mapping[str, str] = environment,
            more: Sequence[Permission] = (),
        ) -> CapabilityFunction:
            return CapabilityFunction(
                self,
                capability.capitalize(),
                capability=capability,
                cluster=cluster,
                code=code,
                environment=environment,
                permissions=[*sizing, *more],
                timeout=Duration.seconds(timeout_seconds),
                memory_mib=SIZING_MEMORY_MIB,
            )

        idler = Idler(self, "Idle", cluster=cluster, code=code, environment=environment, sizing=sizing)
        functions = {
            "prescale": function("prescale", 60),
            "tick": function(
                "tick",
                50,
                environment={**environment, "FIRSTBELL_QUEUE_URL": drainer.queue.queue_url},
                more=permissions.look_after_drains(self, cluster, ledger.table.table_arn, drainer.queue.queue_arn),
            ),
            "interruption": drainer.handler,
            "idle": idler.handler,
        }
        prescaler = Prescaler(self, "Signals", file=file, cluster=cluster, bus=bus.bus, handler=functions["prescale"])
        Ticker(self, "Ticker", cluster=cluster, handler=functions["tick"])
        Pools(self, "Pools", cluster=cluster)
        Monitoring(
            self,
            "Monitoring",
            cluster=cluster,
            functions=functions,
            signals_lost=prescaler.failures,
            interruptions=drainer.queue,
            interruptions_lost=drainer.dead_letters,
        )
        bus.seal(file, [function.role.role_arn for function in functions.values()])
        CfnOutput(self, "BusArn", value=bus.bus.event_bus_arn, description="Where portals put their signals")
