"""The AWS calls that only `doctor` makes, each a read."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from firstbell.cloud.refusals import translated

if TYPE_CHECKING:
    from collections.abc import Mapping


RECENT_SECONDS = 300


class Aws:
    """One region, with the operator's own credentials. Every method raises RetryLater, AccessDenied or Refused."""

    def __init__(self, region: str) -> None:
        self.region = region
        self._session = boto3.Session(region_name=region)
        self.client = cache(self._client)

    def ask(self, service: str, operation: str, **arguments: Any) -> Any:
        """One call. `operation` in boto3's spelling."""
        client = self.client(service)
        with translated(f"{service}:{client.meta.method_to_api_mapping[operation]}"):
            return getattr(client, operation)(**arguments)

    def pages(self, service: str, operation: str, key: str, **arguments: Any) -> list[Any]:
        """Every entry under `key` of every page."""
        client = self.client(service)
        with translated(f"{service}:{client.meta.method_to_api_mapping[operation]}"):
            return [entry for page in client.get_paginator(operation).paginate(**arguments) for entry in page[key]]

    def resources(self, stack: str) -> list[tuple[str, str]]:
        """Type and physical id of everything in a stack."""
        listed = self.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack)
        return [(r["ResourceType"], r["PhysicalResourceId"]) for r in listed if r.get("PhysicalResourceId")]

    def good_runs(self, function: str, now: float) -> float:
        """How many runs of a function began within the last five minutes and did not fail, as Lambda counts them.
        https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html"""
        return self._sum("Invocations", function, now) - self._sum("Errors", function, now)

    def _sum(self, metric: str, function: str, now: float) -> float:
        points = self.ask(
            "cloudwatch",
            "get_metric_statistics",
            Namespace="AWS/Lambda",
            MetricName=metric,
            Dimensions=[{"Name": "FunctionName", "Value": function}],
            StartTime=datetime.fromtimestamp(now - RECENT_SECONDS, UTC),
            EndTime=datetime.fromtimestamp(now + 1, UTC),
            Period=60,
            Statistics=["Sum"],
        )["Datapoints"]
        return float(sum(point["Sum"] for point in points))

    def session_of(self, role_arn: str) -> Mapping[str, str]:
        """Credentials of a role, where it lets the caller in: the functions' own roles let in Lambda only."""
        answer = self.ask("sts", "assume_role", RoleArn=role_arn, RoleSessionName="firstbell-doctor")
        credentials: Mapping[str, str] = answer["Credentials"]
        return credentials

    def _client(self, service: str) -> Any:
        make: Any = self._session.client
        return make(service, config=Config(connect_timeout=3, read_timeout=10, retries={"mode": "standard"}))
