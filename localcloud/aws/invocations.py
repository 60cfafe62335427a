"""Asynchronous invocations and SQS batches: retried, given up and acknowledged as Lambda does it.

Wrong upstream: a dead-letter queue gets the destination's envelope instead of the event, throttles use up the
retries, and a batch is acknowledged where AWS takes the function's report for a complete failure.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

from __future__ import annotations

import contextvars
import json
import logging
import os
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from localcloud.aws.queues import put_message
from localcloud.aws.upstream import replace, require

# AWS waits a minute, then two; nobody learns from waiting that long here.
FIRST_RETRY_SECONDS = float(os.environ.get("LOCALCLOUD_ASYNC_RETRY_SECONDS", "1"))
THROTTLED_RETRY_SECONDS = FAILED_BATCH_PAUSE_SECONDS = 1.0
DEFAULT_RETRIES, DEFAULT_EVENT_AGE_SECONDS = 2, 21600

logger = logging.getLogger("localcloud.invocations")


def install() -> None:
    """Replace ministack's retry loop and its reading of batch reports."""
    from ministack.services import lambda_svc, sqs

    require(lambda_svc, "_execute_function", "_event_invoke_config", "_esm_backoff_until", "_route_async_failure")
    require(sqs, "_delete_messages_for_esm")
    replace(lambda_svc, "invoke_async_with_retry", "func event", invoke_asynchronously)
    replace(lambda_svc, "_run_sqs_batch", "esm func_rec event batch queue_url queue_name", run_batch)


def invoke_asynchronously(func: dict[str, Any], event: Any) -> None:
    """Run `func` in the background until it succeeds or Lambda would give the event up."""
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(deliver, func, event), daemon=True).start()


def deliver(func: dict[str, Any], event: Any) -> None:
    from ministack.services import lambda_svc

    stored = (lambda_svc._event_invoke_config(func, qualifier) for qualifier in ("$LATEST", None))
    settings: dict[str, Any] = next((found for found in stored if found), {})
    retries = settings.get("MaximumRetryAttempts", DEFAULT_RETRIES)
    expires = time.time() + settings.get("MaximumEventAgeInSeconds", DEFAULT_EVENT_AGE_SECONDS)
    invocations, delay_seconds = 0, FIRST_RETRY_SECONDS
    while True:
        result = lambda_svc._execute_function(func, event)
        if not result.get("error"):
            return
        if result.get("throttle"):
            wait_seconds = THROTTLED_RETRY_SECONDS
        else:
            invocations += 1
            if invocations > retries:
                give_up(func, settings, event, result, invocations, "RetriesExhausted")
                return
            wait_seconds, delay_seconds = delay_seconds, 2 * delay_seconds
        if time.time() + wait_seconds > expires:
            give_up(func, settings, event, result, invocations, "EventAgeExceeded")
            return
        time.sleep(wait_seconds)


def give_up(
    func: dict[str, Any], settings: dict[str, Any], event: Any, result: dict[str, Any], invocations: int, condition: str
) -> None:
    """The event to the dead-letter queue, and what happened to it to the on-failure destination."""
    from ministack.services import lambda_svc

    config = func["config"]
    body = result.get("body")
    error = body if isinstance(body, dict) else {"errorMessage": str(body)}
    logger.warning("%s gave up an event (%s): %s", config["FunctionName"], condition, error.get("errorMessage"))
    request_id = str(uuid4())
    dead_letters = (config.get("DeadLetterConfig") or {}).get("TargetArn", "")
    if ":sqs:" in dead_letters:
        reasons = {"RequestID": request_id, "ErrorCode": "200", "ErrorMessage": str(error.get("errorMessage"))[:1024]}
        put_message(dead_letters, json.dumps(event), reasons)
    destination = (settings.get("DestinationConfig") or {}).get("OnFailure", {}).get("Destination", "")
    if ":sqs:" in destination:
        record = {
            "version": "1.0",
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "requestContext": {
                "requestId": request_id,
                "functionArn": f"{config['FunctionArn']}:$LATEST",
                "condition": condition,
                "approximateInvokeCount": invocations,
            },
            "requestPayload": event,
            "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
            "responsePayload": error,
        }
        put_message(destination, json.dumps(record), {})
    for other in {arn for arn in (dead_letters, destination) if arn and ":sqs:" not in arn}:
        lambda_svc._route_async_failure(other, config["FunctionName"], event, result)


def run_batch(
    esm: dict[str, Any],
    func_rec: dict[str, Any],
    event: dict[str, Any],
    batch: list[dict[str, Any]],
    queue_url: str,
    queue_name: str,
) -> None:
    """Invoke the function with a batch; only what it reports as done leaves the queue.

    Deletes by the receipt handles that the function was given: a message that became visible again meanwhile has a
    newer one and stays.
    """
    from ministack.services import lambda_svc, sqs

    result = lambda_svc._execute_function(func_rec, event)
    handles = {record["messageId"]: record["receiptHandle"] for record in event["Records"]}
    reports = "ReportBatchItemFailures" in (esm.get("FunctionResponseTypes") or [])
    failed = set(handles) if result.get("error") else failed_messages(result.get("body") if reports else None, handles)
    if result.get("error"):
        lambda_svc._esm_backoff_until[esm["UUID"]] = time.time() + FAILED_BATCH_PAUSE_SECONDS
        logger.warning("%s failed a batch of %s: %s", esm["FunctionName"], queue_name, result.get("body"))
    filtered_out = {message["receipt_handle"] for message in batch if message["id"] not in handles}
    done = {handle for message_id, handle in handles.items() if message_id not in failed}
    sqs._delete_messages_for_esm(queue_url, done | filtered_out)
    esm["LastProcessingResult"] = f"{len(done)} of {len(handles)} records done"


def failed_messages(report: Any, message_ids: Iterable[str]) -> set[str]:
    """Which messages of a batch a function reports as failed: all of them where its report is not usable.

    Nothing reported (null, an empty object or list) is a complete success; an empty, missing, null or unknown
    identifier a complete failure.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#services-sqs-batchfailurereporting
    """
    known = set(message_ids)
    failures = report.get("batchItemFailures") if isinstance(report, dict) else None
    reported = {item.get("itemIdentifier") for item in failures or []}
    return reported if reported <= known else known
