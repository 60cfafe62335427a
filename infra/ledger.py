"""The ledger: what has to be remembered between two runs of any function."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from infra import names


class Ledger(Construct):
    """One table, paid by request; nothing in it outlives the class that it was written for by more than a day."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: str) -> None:
        super().__init__(scope, construct_id)
        self.table = dynamodb.Table(
            self,
            "Table",
            table_name=names.table_name(cluster),
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute="expires_at",
            encryption=dynamodb.TableEncryption.DEFAULT,  # with a key that AWS owns: no cost, no key to lose
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            # Portals can signal again, and the next tick rebuilds the rest; a table left behind would bar a new deploy.
            removal_policy=RemovalPolicy.DESTROY,
        )
