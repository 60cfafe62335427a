"""Why a group does not launch: the words of its scaling activities, classified. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING

from firstbell.capacity.pool_state import JOIN_LIMIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from firstbell.capacity.groups import Activity, Group, Member
    from firstbell.capacity.pool_state import PoolState


class Reason(StrEnum):
    """Why pods are short; the value is what Capacity Short and the metrics carry."""

    LAUNCH_SUSPENDED = "launch-suspended"
    INSUFFICIENT_CAPACITY = "insufficient-capacity"
    SPOT_PRICE = "spot-price"
    QUOTA = "quota"
    LAUNCH_FAILED = "launch-failed"
    MAX_SIZE = "max-size"
    NEVER_JOINED = "never-joined"
    OTHER_WRITER = "other-writer"
    BUSY_GROUP = "busy-group"
    NO_SUCH_GROUP = "no-such-group"
    UNPLACEABLE = "unplaceable"
    PAUSED = "paused"


FALLS_BACK = frozenset(
    {
        Reason.LAUNCH_SUSPENDED,
        Reason.INSUFFICIENT_CAPACITY,
        Reason.SPOT_PRICE,
        Reason.LAUNCH_FAILED,
        Reason.NEVER_JOINED,
    }
)
"""Reasons for which the shortfall goes to the pool's fallback pools. A quota would refuse those too."""


REFRESH_SECONDS = 15 * 60
"""How long after its last activity an instance refresh is taken to go on (it waits for instances to warm up)."""


@dataclass(frozen=True, slots=True)
class LaunchFailure:
    reason: Reason
    detail: str
    """AWS's own words, or the quota's name."""
    at: float


_SAME_MOMENT_SECONDS = 60.0
_CHANGE = re.compile(r"desired capacity from (\d+) to (\d+)")
_REFRESH = "instance refresh"
_by_start = attrgetter("started_at")

# What StatusMessage says, as error codes ("Could not launch On-Demand Instances. VcpuLimitExceeded - You...") or, for
# groups without a mixed instances policy, in words alone. First match wins. Sources: "Troubleshoot Amazon EC2 Auto
# Scaling" (docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html, ts-as-capacity.html), EC2's
# error codes (docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html), and messages that people were sent;
# tests/unit/capacity/test_failures.py has each.
_PHRASES: tuple[tuple[str, Reason, str], ...] = (
    ("maxspotinstancecountexceeded", Reason.QUOTA, "MaxSpotInstanceCountExceeded"),
    ("max spot instance count exceeded", Reason.QUOTA, "MaxSpotInstanceCountExceeded"),
    ("vcpulimitexceeded", Reason.QUOTA, "VcpuLimitExceeded"),
    ("more vcpu capacity than your current vcpu limit", Reason.QUOTA, "VcpuLimitExceeded"),
    ("instancelimitexceeded", Reason.QUOTA, "InstanceLimitExceeded"),
    ("your quota allows for", Reason.QUOTA, "InstanceLimitExceeded"),
    ("than your current instance limit", Reason.QUOTA, "InstanceLimitExceeded"),
    ("volumelimitexceeded", Reason.QUOTA, "VolumeLimitExceeded"),
    ("quota for maximum fleet requests", Reason.QUOTA, "maximum Fleet Requests"),
    ("spotmaxpricetoolow", Reason.SPOT_PRICE, ""),
    ("your spot request price", Reason.SPOT_PRICE, ""),
    ("spot market price", Reason.SPOT_PRICE, ""),
    ("insufficientinstancecapacity", Reason.INSUFFICIENT_CAPACITY, ""),
    ("insufficienthostcapacity", Reason.INSUFFICIENT_CAPACITY, ""),
    ("insufficient capacity", Reason.INSUFFICIENT_CAPACITY, ""),
    ("reservationcapacityexceeded", Reason.INSUFFICIENT_CAPACITY, ""),
    ("do not have sufficient", Reason.INSUFFICIENT_CAPACITY, ""),
    ("unfulfillablecapacity", Reason.INSUFFICIENT_CAPACITY, ""),
    ("no spot capacity available", Reason.INSUFFICIENT_CAPACITY, ""),
    ("no capacity available", Reason.INSUFFICIENT_CAPACITY, ""),
)


def classify(status_message: str) -> tuple[Reason, str]:
    """The reason behind a failed launch's StatusMessage, and the quota's name or AWS's words."""
    message = status_message.lower()
    for phrase, reason, name in _PHRASES:
        if phrase in message:
            return reason, name or status_message
    return Reason.LAUNCH_FAILED, status_message


@dataclass(frozen=True, slots=True)
class Launches:
    """What the launches since the last known failure say."""

    failure: LaunchFailure | None = None
    recovered: bool = False


def read_launches(activities: Iterable[Activity], *, since: float, unlaunched_units: int) -> Launches:
    """Whether the group fails to launch, or launches again, going by launches that started after `since`.

    While units are outstanding a failure counts even beside successes of the same moment: a group that asked for five
    and got three has both. A launch's Description begins with "Launching a new EC2 instance".
    """
    launches = [a for a in activities if a.started_at > since and a.description.startswith("Launching")]
    failed = max(filter(_failed, launches), key=_by_start, default=None)
    success = max((a for a in launches if a.status == "Successful"), key=_by_start, default=None)
    patience = _SAME_MOMENT_SECONDS if unlaunched_units else 0.0
    if failed and (success is None or failed.started_at > success.started_at - patience):
        reason, detail = classify(failed.status_message)
        return Launches(failure=LaunchFailure(reason=reason, detail=detail, at=failed.started_at))
    return Launches(recovered=success is not None)


def _failed(launch: Activity) -> bool:
    """A launch is also Cancelled where its instance came to nothing (a lifecycle action that was abandoned, a key that
    could not be used), which its message says. Without a message, somebody wanted fewer instances."""
    return launch.status == "Failed" or (launch.status == "Cancelled" and bool(launch.status_message))


def being_refreshed(activities: Iterable[Activity], now: float) -> bool:
    """Whether an instance refresh was at work lately: it is the cause of what it starts and takes out of service."""
    return any(_REFRESH in a.cause and a.started_at > now - REFRESH_SECONDS for a in activities)


def lowered_by_us(activities: Iterable[Activity], wrote: tuple[int, int, float]) -> int:
    """The desired capacity that another writer had set between our read and our write, and that we overwrote; else 0.

    Auto Scaling has no compare-and-set; the cause of the activity that followed says "changing the desired capacity
    from 25 to 22".
    """
    read, written, at = wrote
    for activity in activities:
        if activity.started_at >= at - _SAME_MOMENT_SECONDS:
            for before, after in _CHANGE.findall(activity.cause):
                if int(after) == written and int(before) > max(read, written):
                    return int(before)
    return 0


def stalled_launch(group: Group, state: PoolState, now: float) -> LaunchFailure | None:
    """Units that were asked for and not launched for 10 minutes, although no activity says why."""
    patient = not state.unlaunched_since or now - state.unlaunched_since <= JOIN_LIMIT_SECONDS
    if patient or state.backs_off(now):
        return None
    minutes = round((now - state.unlaunched_since) / 60)
    detail = f"{group.unlaunched_units} units were asked for {minutes} minutes ago and nothing was launched"
    return LaunchFailure(Reason.LAUNCH_FAILED, detail, now)


def standing_failure(group: Group, state: PoolState, late: Sequence[Member], now: float) -> LaunchFailure | None:
    """What keeps the group from bringing nodes for as long as it is as it is."""
    if "Launch" in group.suspended:
        return LaunchFailure(Reason.LAUNCH_SUSPENDED, "the Launch process of the group is suspended", now)
    if _keeps_failing_to_join(state, late):
        names = ", ".join(sorted(m.instance_id for m in late))
        return LaunchFailure(Reason.NEVER_JOINED, f"no node joined from {names}", now)
    return None


def _keeps_failing_to_join(state: PoolState, late: Sequence[Member]) -> bool:
    """Whether replacements failed to join as well. The first that do not join are replaced; a second round that does
    not join either, and nobody since the first that did, says that the pool is broken: a third would only cost."""
    seen = sorted(state.first_seen.get(m.instance_id, 0.0) for m in late)
    if not seen or seen[-1] - seen[0] < JOIN_LIMIT_SECONDS:
        return False
    return not any(state.first_seen.get(instance_id, 0.0) > seen[0] for instance_id in state.served)
