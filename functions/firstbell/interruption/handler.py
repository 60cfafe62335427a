"""Lambda: a batch of the interruption queue. Only messages that have to come again are returned."""

from __future__ import annotations

import uuid
from functools import cache
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from firstbell.errors import AccessDenied, FirstbellError
from firstbell.interruption.intake import Batch, read_batch
from firstbell.interruption.notices import Message
from firstbell.settings import load_cluster
from firstbell.telemetry import Telemetry

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from firstbell.interruption.assembly import InterruptionWiring

logger = Logger(service="interruption")


@cache
def _wiring() -> InterruptionWiring:
    from firstbell.interruption.assembly import InterruptionWiring

    return InterruptionWiring(logger)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """SQS's partial batch response: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html"""
    telemetry = Telemetry(load_cluster().name, logger)
    batch = read_batch([_message(record) for record in event["Records"]], load_cluster().pools)
    for reason in batch.ignored:
        telemetry.emit("NoticesIgnored", reason=reason)
    failed = _bury(batch, telemetry) | _drain(batch, context, telemetry)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in sorted(failed)]}


def _bury(batch: Batch, telemetry: Telemetry) -> set[str]:
    """What nobody understands goes to where a person looks, once, and is acknowledged."""
    if not batch.unreadable:
        return set()
    for message, problem in batch.unreadable:
        telemetry.emit("NoticesUnreadable")
        logger.error("message not understood", message_id=message.id, problem=problem, body=message.body[:2000])
    try:
        _wiring().queue.bury([message.body for message, _ in batch.unreadable])
    except FirstbellError:
        logger.exception("messages could not be copied to the dead-letter queue")
        return {message.id for message, _ in batch.unreadable}
    return set()


def _drain(batch: Batch, context: LambdaContext, telemetry: Telemetry) -> set[str]:
    """An error that none of the batch escaped returns them all, rather than fail the invocation (case 65)."""
    if not batch.asked:
        return set()
    holder = f"interruption/{context.aws_request_id}/{uuid.uuid4().hex[:8]}"
    try:
        drainer = _wiring().drainer(holder, lambda: context.get_remaining_time_in_millis() / 1000)
        with telemetry.counting_ledger_errors():
            return drainer.drain(batch.asked)
    except FirstbellError as error:
        logger.exception("batch could not be worked on")
        if isinstance(error, AccessDenied):
            telemetry.emit("ClusterAccessDenied")
        return {one.message.id for one in batch.asked}


def _message(record: dict[str, Any]) -> Message:
    return Message(
        id=record["messageId"],
        receipt=record["receiptHandle"],
        body=record["body"],
        receives=int(record.get("attributes", {}).get("ApproximateReceiveCount", 1)),
    )
