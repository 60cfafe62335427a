"""From a queue message's body to what it says: a registry keyed (source, detail-type, version).

Standard library only, so that a message which asks nothing of us costs no client's import.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from firstbell.interruption import parsers
from firstbell.interruption.notices import Ignored, Unparseable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from firstbell.interruption.notices import Continuation, Notice

    Parser = Callable[[parsers.Envelope], Notice]

OWN_SOURCE = "firstbell"
CONTINUATION = "Drain Continuation"
CHANGE_DUE = "Scheduled Change Due"
TEST_NOTIFICATION = "autoscaling:TEST_NOTIFICATION"

REGISTRY: Mapping[tuple[str, str, str], Parser] = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning", "0"): parsers.spot,
    ("aws.ec2", "EC2 Instance Rebalance Recommendation", "0"): parsers.rebalance,
    ("aws.ec2", "EC2 Instance State-change Notification", "0"): parsers.state_change,
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning", "0"): parsers.capacity_reservation,
    ("aws.ec2", "Capacity Block Reservation Expiration Warning", "0"): parsers.capacity_block,
    ("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", "0"): parsers.lifecycle,
    ("aws.health", "AWS Health Event", "0"): parsers.health,
    ("firstbell.drill", "Drill", "0"): parsers.drill,
    (OWN_SOURCE, CHANGE_DUE, "1"): parsers.change_due,
    (OWN_SOURCE, CONTINUATION, "1"): parsers.continuation,
}


def parse(body: str) -> Notice:
    """One message's body as what it says; raises Unparseable where it is not what its sender documents."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unparseable(f"the body is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise Unparseable("the body is not a JSON object")
    if "source" not in document:
        return _from_auto_scaling(document)
    envelope = parsers.Envelope(document)
    parser = REGISTRY.get(envelope.key)
    if parser is None:
        return Ignored("unknown_kind")
    return parser(envelope)


def continuation_body(continuation: Continuation) -> str:
    """The message that `parse` reads back as `continuation`."""
    return json.dumps(
        {
            "version": "1",
            "source": OWN_SOURCE,
            "detail-type": CONTINUATION,
            "detail": {
                "instance_id": continuation.instance_id,
                "pass": continuation.number,
                "kind": continuation.kind,
                "deadline": continuation.deadline,
            },
        }
    )


def _from_auto_scaling(document: Mapping[str, Any]) -> Notice:
    """A flat body, as a lifecycle hook with a notification target puts straight into a queue (case 2).

    https://docs.aws.amazon.com/autoscaling/ec2/userguide/prepare-for-lifecycle-notifications.html
    """
    if document.get("Event") == TEST_NOTIFICATION:
        return Ignored("test_notification")
    if "LifecycleTransition" not in document:
        return Ignored("unknown_kind")
    return parsers.lifecycle(
        parsers.Envelope(
            {
                "id": document.get("RequestId") or document.get("LifecycleActionToken", ""),
                "time": document.get("Time"),
                "detail": document,
            }
        )
    )
