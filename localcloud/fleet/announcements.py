"""What AWS says by itself: events on the default bus, and lifecycle notices put straight to a queue.

Shapes: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-event-reference.html,
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html,
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html,
https://docs.aws.amazon.com/autoscaling/ec2/userguide/prepare-for-lifecycle-notifications.html
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import urllib3

from localcloud.fleet.state import Activity, Group, Machine, Member, Wait
from localcloud.fleet.wording import stamp

logger = logging.getLogger(__name__)

EVENTS_PATH = "/_localcloud/aws-events"
TIMEOUT = urllib3.Timeout(connect=2, read=10)


class Announcer(Protocol):
    """Takes an event (its detail-type, source, resources, detail) or a queue's message, and never fails the caller."""

    def event(
        self, source: str, kind: str, resources: Sequence[str], detail: Mapping[str, Any], now: float
    ) -> None: ...
    def notify(self, target_arn: str, body: Mapping[str, Any]) -> None: ...


class CloudAnnouncer:
    """Posts to the emulated AWS in the background; what is said while it is not there is lost (AWS: best effort)."""

    def __init__(self, aws_endpoint: str, account: str, region: str) -> None:
        self._endpoint, self._account, self._region = aws_endpoint, account, region
        self._http = urllib3.PoolManager(timeout=TIMEOUT, retries=False)
        self._work: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._sqs: Any = None
        threading.Thread(target=self._run, name="announcer", daemon=True).start()

    def event(self, source: str, kind: str, resources: Sequence[str], detail: Mapping[str, Any], now: float) -> None:
        whole = {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": kind,
            "source": source,
            "account": self._account,
            "time": stamp(now),
            "region": self._region,
            "resources": list(resources),
            "detail": dict(detail),
        }
        self._work.put((EVENTS_PATH, whole))

    def notify(self, target_arn: str, body: Mapping[str, Any]) -> None:
        self._work.put((target_arn, dict(body)))

    def _run(self) -> None:
        while True:
            target, body = self._work.get()
            try:
                self._post(body) if target == EVENTS_PATH else self._send(target, body)
            except Exception as error:  # noqa: BLE001 - best effort, whatever the other side does
                logger.warning("not announced to %s: %s", target, error)

    def _post(self, event: Mapping[str, Any]) -> None:
        answer = self._http.request(
            "POST",
            self._endpoint + EVENTS_PATH,
            body=json.dumps(event),
            headers={"Content-Type": "application/json"},
        )
        if answer.status >= 400:
            logger.warning("the event %s was not taken: %s", event["detail-type"], answer.status)

    def _send(self, target_arn: str, body: Mapping[str, Any]) -> None:
        service, region, account, name = target_arn.split(":")[2:6]
        if service != "sqs":
            logger.warning("only queues can be notified here, not %s", target_arn)
            return
        if self._sqs is None:
            import boto3

            self._sqs = boto3.client(
                "sqs",
                endpoint_url=self._endpoint,
                region_name=region,
                aws_access_key_id=account,
                aws_secret_access_key="autoscaling",  # noqa: S106 - the emulator takes any
            )
        self._sqs.send_message(QueueUrl=f"{self._endpoint}/{account}/{name}", MessageBody=json.dumps(body))


def instance_arn(machine: Machine, account: str, region: str) -> str:
    return f"arn:aws:ec2:{region}:{account}:instance/{machine.instance_id}"


def lifecycle_detail(member: Member, wait: Wait) -> dict[str, Any]:
    launching = "LAUNCHING" in wait.hook.transition
    detail = {
        "LifecycleActionToken": wait.token,
        "AutoScalingGroupName": wait.hook.group_name,
        "LifecycleHookName": wait.hook.name,
        "EC2InstanceId": member.instance_id,
        "LifecycleTransition": wait.hook.transition,
        "Origin": "EC2" if launching else "AutoScalingGroup",
        "Destination": "AutoScalingGroup" if launching else "EC2",
    }
    return {**detail, "NotificationMetadata": wait.hook.metadata} if wait.hook.metadata else detail


def lifecycle_notice(member: Member, wait: Wait, account: str, now: float) -> dict[str, Any]:
    """The flat body that a queue gets."""
    return {
        **lifecycle_detail(member, wait),
        "Service": "AWS Auto Scaling",
        "Time": stamp(now),
        "RequestId": str(uuid.uuid4()),
        "AccountId": account,
    }


def trial_notice(group: Group, account: str, now: float) -> dict[str, Any]:
    return {
        "AccountId": account,
        "RequestId": str(uuid.uuid4()),
        "AutoScalingGroupARN": group.arn,
        "AutoScalingGroupName": group.name,
        "Service": "AWS Auto Scaling",
        "Event": "autoscaling:TEST_NOTIFICATION",
        "Time": stamp(now),
    }


def activity_detail(activity: Activity, instance_id: str) -> dict[str, Any]:
    """AWS says InProgress here even of a launch that succeeded."""
    return {
        "StatusCode": "Failed" if activity.status == "Failed" else "InProgress",
        "Description": activity.description,
        "AutoScalingGroupName": activity.group_name,
        "ActivityId": activity.activity_id,
        "Details": dict(activity.details),
        "RequestId": activity.activity_id,
        "StatusMessage": activity.message,
        "EndTime": stamp(activity.ended_at or activity.started_at),
        "EC2InstanceId": instance_id,
        "StartTime": stamp(activity.started_at),
        "Cause": activity.cause,
        "Origin": "EC2" if activity.description.startswith("Launching") else "AutoScalingGroup",
        "Destination": "AutoScalingGroup" if activity.description.startswith("Launching") else "EC2",
    }
