"""What a group's scaling activities say about its launches, taken into the pool's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.capacity.failures import Reason, read_launches, stalled_launch, standing_failure
from firstbell.capacity.joining import never_joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firstbell.capacity.groups import Activity, Group
    from firstbell.capacity.joining import Sight
    from firstbell.capacity.pool_state import PoolState
    from firstbell.capacity.reservations import Reservation
    from firstbell.cloud.autoscaling import AutoScaling
    from firstbell.telemetry import Telemetry

ACTIVITY_WINDOW_SECONDS = 3600.0
OVERWRITE_WINDOW_SECONDS = 180.0
_STANDING = (Reason.LAUNCH_SUSPENDED, Reason.NEVER_JOINED)


def read_activities(
    autoscaling: AutoScaling, group: Group, state: PoolState, own: Sequence[Reservation], now: float
) -> list[Activity]:
    """Scaling activities where they may tell something: units not launched, a failure to recover from, a recent write
    of ours that may have met another's, instances that somebody waits for. None else: it saves a call.
    """
    recent_write = now - state.wrote[2] < OVERWRITE_WINDOW_SECONDS
    awaited = any(r.progress.raised_at and not r.progress.ready_at for r in own)
    if not (group.unlaunched_units or state.failure_reason or recent_write or awaited):
        return []
    return autoscaling.activities(group.name, now - ACTIVITY_WINDOW_SECONDS)


def with_launches(
    state: PoolState,
    pool: str,
    group: Group,
    sight: Sight,
    activities: Sequence[Activity],
    telemetry: Telemetry,
    now: float,
) -> PoolState:
    """The state after launches that failed (it backs off), succeeded again, or that something stands in the way of."""
    launches = read_launches(activities, since=state.failure_at, unlaunched_units=group.unlaunched_units)
    failure = launches.failure or stalled_launch(group, state, now)
    standing = standing_failure(group, state, never_joined(group, state, sight, now), now)
    if failure is not None:
        state = state.failed(failure)
        telemetry.emit("LaunchFailures", pool=pool, reason=str(failure.reason))
        if failure.reason is Reason.QUOTA:
            telemetry.emit("QuotaReached", pool=pool)
    elif launches.recovered or (standing is None and state.failure_reason in _STANDING):
        state = state.recovered()
    return state if standing is None else state.blocked(standing, now)
