"""Schedules that fire on time.

Different upstream: both schedulers look every ten seconds, so `rate(1 minute)` may be ten seconds late.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
"""

from __future__ import annotations

from localcloud.aws.upstream import require

TICK_SECONDS = 1


def install() -> None:
    """Look every second. UpstreamChanged where the interval is kept elsewhere."""
    from ministack.services import eventbridge, scheduler

    require(eventbridge, "_SCHEDULER_TICK_INTERVAL")
    require(scheduler, "_SCHEDULE_TICK_INTERVAL")
    eventbridge._SCHEDULER_TICK_INTERVAL = TICK_SECONDS
    scheduler._SCHEDULE_TICK_INTERVAL = TICK_SECONDS
