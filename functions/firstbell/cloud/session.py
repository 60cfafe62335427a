"""One boto3 client per service and environment, made when first used: a cold start pays only for what it calls."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_elbv2 import ElasticLoadBalancingv2Client
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sts import STSClient

CONNECT_TIMEOUT_SECONDS = 2
READ_TIMEOUT_SECONDS = 5
ATTEMPTS = 4
"""The first try included. Standard retries back off and honour each service's throttling."""


class Clients:
    """The clients of one region. https://docs.aws.amazon.com/boto3/latest/guide/clients.html"""

    def __init__(self, region: str | None = None) -> None:
        """`region` defaults to the environment's (AWS_DEFAULT_REGION, which Lambda sets)."""
        self.region = region

    @cached_property
    def autoscaling(self) -> AutoScalingClient:
        return self._session.client("autoscaling", config=self._config)

    @cached_property
    def cloudwatch(self) -> CloudWatchClient:
        return self._session.client("cloudwatch", config=self._config)

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        return self._session.client("dynamodb", config=self._config)

    @cached_property
    def ec2(self) -> EC2Client:
        return self._session.client("ec2", config=self._config)

    @cached_property
    def eks(self) -> EKSClient:
        return self._session.client("eks", config=self._config)

    @cached_property
    def elbv2(self) -> ElasticLoadBalancingv2Client:
        return self._session.client("elbv2", config=self._config)

    @cached_property
    def events(self) -> EventBridgeClient:
        return self._session.client("events", config=self._config)

    @cached_property
    def sqs(self) -> SQSClient:
        return self._session.client("sqs", config=self._config)

    @cached_property
    def sts(self) -> STSClient:
        """The regional endpoint (the default of STS clients), whose tokens an EKS cluster of the region accepts."""
        return self._session.client("sts", config=self._config)

    @property
    def credentials(self) -> Any:
        """What requests are signed with, for the one that is signed by hand (an EKS token)."""
        return self._session.get_credentials()

    @cached_property
    def _session(self) -> boto3.Session:
        import boto3

        return boto3.Session(region_name=self.region)

    @cached_property
    def _config(self) -> Config:
        from botocore.config import Config

        return Config(
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            read_timeout=READ_TIMEOUT_SECONDS,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        )
