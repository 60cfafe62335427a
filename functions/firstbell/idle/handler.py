"""Lambda: runs every five minutes."""

from __future__ import annotations

import time
import uuid
from functools import cache
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from firstbell.idle.service import Idler
from firstbell.idle.sizes import MinSizes
from firstbell.idle.telling import Teller
from firstbell.idle.visit import Visitor
from firstbell.wiring import Wiring

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger(service="idle")


@cache
def _wiring() -> Wiring:
    return Wiring(logger)


@logger.inject_lambda_context(clear_state=True)
def handler(_event: dict[str, Any], context: LambdaContext) -> None:
    wiring = _wiring()
    holder = f"idle/{context.aws_request_id}/{uuid.uuid4().hex[:8]}"
    reconciler = wiring.reconciler(holder, thorough=False)
    visitor = Visitor(
        settings=wiring.settings,
        ledger=wiring.ledger,
        autoscaling=wiring.autoscaling,
        sizes=MinSizes(wiring.autoscaling, wiring.eks, wiring.settings.name),
        connect=lambda: wiring.cluster,
        teller=Teller(wiring.bus, wiring.settings.name, wiring.telemetry),
        telemetry=wiring.telemetry,
        clock=time.time,
        sleep=time.sleep,
        seconds_left=lambda: context.get_remaining_time_in_millis() / 1000,
        holder=holder,
    )
    idler = Idler(
        visitor=visitor,
        group_name=wiring.group_name,
        bring_to_size=lambda pool: reconciler.bring_to_size([pool], wiring.reading, changed=False),
    )
    with wiring.telemetry.counting_ledger_errors():
        idler.evaluate()
