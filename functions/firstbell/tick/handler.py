"""Lambda: runs each minute, and at once when Auto Scaling says that a launch failed."""

from __future__ import annotations

import uuid
from functools import cache
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from firstbell.tick.assembly import TickWiring

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

LAUNCH_FAILED = "EC2 Instance Launch Unsuccessful"

logger = Logger(service="tick")


@cache
def _wiring() -> TickWiring:
    return TickWiring(logger)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    wiring = _wiring()
    ticker = wiring.ticker(f"tick/{context.aws_request_id}/{uuid.uuid4().hex[:8]}")
    with wiring.telemetry.counting_ledger_errors():
        if event.get("detail-type") == LAUNCH_FAILED:
            ticker.group_failed(event.get("detail", {}).get("AutoScalingGroupName", ""))
        else:
            ticker.tick()
