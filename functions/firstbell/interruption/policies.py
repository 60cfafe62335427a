"""What each kind of notice asks for in one pool. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.capacity.drains import Hook, News
from firstbell.interruption.notices import Ignored, Kind
from firstbell.interruption.parsers import SHUTDOWN_SECONDS

if TYPE_CHECKING:
    from firstbell.capacity.pools import InterruptionPolicy, Pool
    from firstbell.interruption.notices import Interruption

CAP_RESERVE_SECONDS = 60.0
"""Before a hook's global timeout: by then the action has been completed by us, not by Auto Scaling's default."""
STALE_SECONDS = 300.0
"""A deadline that passed this long ago on a node that is still Ready was not kept, or is told late."""


@dataclass(frozen=True, slots=True)
class HookTimes:
    """A terminate hook of a group, in seconds."""

    heartbeat_seconds: float
    global_seconds: float


@dataclass(frozen=True, slots=True)
class CordonOnly:
    """Hold the node back for a while; nothing is evicted."""


@dataclass(frozen=True, slots=True)
class Store:
    """A scheduled change whose time has not come."""


Answer = News | CordonOnly | Store | Ignored


def answer(
    notice: Interruption, instance_id: str, pool: Pool, group: str, times: HookTimes | None, now: float
) -> Answer:
    """What `notice` asks for one instance of `pool`. `times` are those of the notice's hook, None if it is no more."""
    policy = pool.interruption
    wanted = {Kind.SPOT: policy.spot, Kind.REBALANCE: policy.rebalance}.get(notice.kind, "drain")
    if wanted == "observe":
        return Ignored(f"{notice.kind}_observed")
    if wanted == "cordon":
        return CordonOnly()
    match notice.kind:
        case Kind.LIFECYCLE if notice.hook is not None and notice.hook.hook != policy.hook:
            return Ignored("foreign_hook")
        case Kind.SCHEDULED_CHANGE if not notice.due and not _soon(notice, policy, now):
            return Store()
        case Kind.SCHEDULED_CHANGE if notice.change is not None and notice.change.ended:
            return Store()
    hook = None
    if notice.hook is not None and times is not None:
        hook = Hook(
            group=notice.hook.group,
            name=notice.hook.hook,
            token=notice.hook.token,
            heartbeat_seconds=times.heartbeat_seconds,
            beaten_at=notice.event_time,
        )
    return News(
        instance_id=instance_id,
        kind=notice.kind,
        event_id=notice.event_id,
        event_time=notice.event_time,
        deadline=_deadline(notice, policy, times),
        hook=hook,
        state=notice.state,
        drill=notice.drill,
        pool=pool.name,
        group=group,
    )


def stale(news: News, *, node_ready: bool, now: float) -> bool:
    """Whether the notice is so late that it must not force anything: its instance plainly lives on."""
    return node_ready and news.hook is None and now > news.deadline + STALE_SECONDS


def _soon(notice: Interruption, policy: InterruptionPolicy, now: float) -> bool:
    return notice.deadline is not None and now >= notice.deadline - policy.before_minutes * 60


def _deadline(notice: Interruption, policy: InterruptionPolicy, times: HookTimes | None) -> float:
    if notice.deadline is not None:
        return notice.deadline
    if notice.kind is Kind.REBALANCE:
        return notice.event_time + policy.rebalance_ttl_minutes * 60
    if times is None:
        return notice.event_time + SHUTDOWN_SECONDS
    return notice.event_time + times.global_seconds - CAP_RESERVE_SECONDS
