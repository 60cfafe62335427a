"""Suspends AZRebalance on a group when CloudFormation makes or changes it. Runs in Lambda as it stands here, inline."""

import json
import urllib.request
from typing import Any

import boto3


def handler(event: dict[str, Any], _context: object) -> None:
    answer = {
        "Status": "SUCCESS",
        "PhysicalResourceId": event.get("PhysicalResourceId", event["LogicalResourceId"]),
        **{key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")},
    }
    try:
        if event["RequestType"] != "Delete":  # the group itself goes then
            group = event["ResourceProperties"]["AutoScalingGroupName"]
            boto3.client("autoscaling").suspend_processes(AutoScalingGroupName=group, ScalingProcesses=["AZRebalance"])
    except Exception as error:  # noqa: BLE001  # without an answer CloudFormation waits for an hour
        answer |= {"Status": "FAILED", "Reason": f"AZRebalance was not suspended: {error}"}
    # CloudFormation's own presigned address, always HTTPS on AWS.
    request = urllib.request.Request(event["ResponseURL"], json.dumps(answer).encode(), method="PUT")  # noqa: S310
    urllib.request.urlopen(request, timeout=20).close()  # noqa: S310
