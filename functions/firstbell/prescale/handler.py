"""Lambda: `Demand Signal` and `Demand Cancelled`, one event an invocation, straight from the bus's rule."""

from __future__ import annotations

import time
import uuid
from functools import cache
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from firstbell.prescale.service import Prescaler
from firstbell.wiring import Wiring

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger(service="prescale")


@cache
def _wiring() -> Wiring:
    return Wiring(logger)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Raises what a later attempt can heal: Lambda delivers the event twice more, then puts it into the DLQ."""
    wiring = _wiring()
    holder = f"prescale/{context.aws_request_id}/{uuid.uuid4().hex[:8]}"
    prescaler = Prescaler(
        settings=wiring.settings,
        ledger=wiring.ledger,
        bus=wiring.bus,
        reconciler=wiring.reconciler(holder, thorough=False),
        read=wiring.reading,
        telemetry=wiring.telemetry,
        clock=time.time,
    )
    with wiring.telemetry.counting_ledger_errors():
        prescaler.take(event)
