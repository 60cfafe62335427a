"""SQS under many hands, and a door into it for what the emulator itself sends.

Wrong upstream: API calls change a queue on the event loop while the event source poller changes it on a thread of its
own; each replaces the list of messages as a whole, so a message sent in between is lost. One lock serves all here.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

from localcloud.aws.upstream import UpstreamChanged, replace

lock = threading.RLock()


def install() -> None:
    """Put every reader and writer of a queue under one lock. UpstreamChanged where they are others."""
    from ministack.services import eventbridge, sqs

    sqs._queues_lock = lock
    for action, upstream in sqs._HANDLERS.items():
        if not inspect.iscoroutinefunction(upstream):
            sqs._HANDLERS[action] = locked(upstream)
        elif action != "ReceiveMessage":
            raise UpstreamChanged(f"SQS {action} became asynchronous, the lock would not hold")
    for name, parameters in (
        ("_collect_msgs", "q max_n vis_timeout"),
        ("_dlq_sweep", "q"),
        ("_expire_retained", "q"),
        ("_refresh_counts", "q"),
    ):
        replace(sqs, name, parameters, locked(getattr(sqs, name)))
    to_queue = locked(eventbridge._dispatch_to_sqs)
    replace(eventbridge, "_dispatch_to_sqs", "spec payload sqs_parameters", to_queue)


def locked(upstream: Callable[..., Any]) -> Callable[..., Any]:
    def under_lock(*arguments: Any, **named: Any) -> Any:
        with lock:
            return upstream(*arguments, **named)

    return under_lock


def put_message(queue_arn: str, body: str, attributes: dict[str, str]) -> bool:
    """Put a message on the queue of that ARN, attributes as strings; False where there is no such queue."""
    from ministack.core.responses import request_scope
    from ministack.services import sqs

    _, _, _, region, account, name = queue_arn.split(":", 5)
    with request_scope(account, region):
        if sqs._queue_by_arn(queue_arn) is None:
            return False
        named = {key: {"DataType": "String", "StringValue": value} for key, value in attributes.items() if value}
        sqs._HANDLERS["SendMessage"]({"MessageBody": body, "MessageAttributes": named}, sqs._queue_url(name))
    return True
