"""One parser a kind of message. Each cites the page whose shape it reads; samples are in tests/samples/interruption."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from firstbell.interruption.notices import (
    Continuation,
    HookCall,
    Ignored,
    Interruption,
    Kind,
    ScheduledChange,
    Unparseable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firstbell.interruption.notices import Notice

SPOT_NOTICE_SECONDS = 120
CAPACITY_BLOCK_RECLAIM_SECONDS = 30 * 60
"""A capacity block's instances begin to end this long before the block does (its warning comes 10 minutes earlier)."""
SHUTDOWN_SECONDS = 30
"""What we allow a stopping instance: EC2 waits for nobody then, and the operating system is on its way down."""
GOING_STATES = frozenset({"stopping", "shutting-down"})
GONE_STATES = frozenset({"stopped", "terminated"})
DRILL_KINDS: Mapping[str, Kind] = {
    "spot": Kind.SPOT,
    "rebalance": Kind.REBALANCE,
    "terminate": Kind.LIFECYCLE,
}

_INSTANCE_ID = re.compile(r"i-[0-9a-f]+")
_PAGE_SUFFIX = re.compile(r"-\d+$")


class Envelope:
    """An EventBridge envelope, read field by field; a wrong field raises Unparseable naming it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        detail = document.get("detail")
        if not isinstance(detail, dict):
            raise Unparseable("`detail` is not an object")
        self.detail: Mapping[str, Any] = detail

    @property
    def key(self) -> tuple[str, str, str]:
        # EC2's page on capacity blocks writes `detail_type`; the bus itself writes `detail-type`.
        kind = self._document.get("detail-type") or self._document.get("detail_type") or ""
        return str(self._document["source"]), str(kind), str(self._document.get("version", "0"))

    @property
    def event_id(self) -> str:
        return str(self._document.get("id") or "")

    @property
    def time(self) -> float:
        return timestamp(self._document.get("time"), "time")

    def text(self, name: str) -> str:
        value = self.detail.get(name)
        if not isinstance(value, str) or not value:
            raise Unparseable(f"`detail.{name}` is {value!r}, not a text")
        return value

    def instance(self, name: str) -> tuple[str, ...]:
        return (instance_id(self.detail.get(name), f"detail.{name}"),)


def spot(envelope: Envelope) -> Notice:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html

    `instance-action` (terminate, stop, hibernate) changes nothing for the pods. Hibernation begins at once and its
    notice is only as early as the event is fast, but a node that freezes is NotReady, which ends the drain earlier.
    """
    return Interruption(
        kind=Kind.SPOT,
        instance_ids=envelope.instance("instance-id"),
        event_id=envelope.event_id,
        event_time=envelope.time,
        deadline=envelope.time + SPOT_NOTICE_SECONDS,
    )


def rebalance(envelope: Envelope) -> Notice:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html"""
    return Interruption(
        kind=Kind.REBALANCE,
        instance_ids=envelope.instance("instance-id"),
        event_id=envelope.event_id,
        event_time=envelope.time,
    )


def state_change(envelope: Envelope) -> Notice:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instance-state-changes.html (case 32)"""
    state = envelope.text("state")
    if state not in GOING_STATES | GONE_STATES:
        return Ignored("state_of_no_concern")
    return Interruption(
        kind=Kind.STATE_CHANGE,
        instance_ids=envelope.instance("instance-id"),
        event_id=envelope.event_id,
        event_time=envelope.time,
        deadline=envelope.time + (SHUTDOWN_SECONDS if state in GOING_STATES else 0),
        state=state,
    )


def capacity_reservation(envelope: Envelope) -> Notice:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitor-interruptible-cr.html"""
    ends = envelope.detail.get("instance-termination-time")
    return Interruption(
        kind=Kind.CAPACITY_RESERVATION,
        instance_ids=envelope.instance("instance-id"),
        event_id=envelope.event_id,
        event_time=envelope.time,
        deadline=timestamp(ends, "detail.instance-termination-time") if ends else envelope.time + SPOT_NOTICE_SECONDS,
    )


def capacity_block(envelope: Envelope) -> Notice:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html; it names no instances."""
    return Interruption(
        kind=Kind.CAPACITY_BLOCK,
        instance_ids=(),
        event_id=envelope.event_id,
        event_time=envelope.time,
        deadline=timestamp(envelope.text("end-date"), "detail.end-date") - CAPACITY_BLOCK_RECLAIM_SECONDS,
        reservation_id=envelope.text("capacity-reservation-id"),
    )


def lifecycle(envelope: Envelope) -> Notice:
    """https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-event-reference.html

    A launch hook, and a move into or out of a warm pool (`Origin`, `Destination`), is somebody else's.
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pools-eventbridge-events.html
    """
    if envelope.text("LifecycleTransition") != "autoscaling:EC2_INSTANCE_TERMINATING":
        return Ignored("launch_hook")
    if "WarmPool" in (envelope.detail.get("Origin"), envelope.detail.get("Destination")):
        return Ignored("warm_pool_hook")
    return Interruption(
        kind=Kind.LIFECYCLE,
        instance_ids=envelope.instance("EC2InstanceId"),
        event_id=envelope.event_id,
        event_time=envelope.time,
        hook=HookCall(
            group=envelope.text("AutoScalingGroupName"),
            hook=envelope.text("LifecycleHookName"),
            token=str(envelope.detail.get("LifecycleActionToken") or ""),
        ),
    )


def health(envelope: Envelope) -> Notice:
    """https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html (case 4)

    A long list of instances comes in pages, each a message with the same `eventArn` and `communicationId`, the latter
    followed by the page's number. https://docs.aws.amazon.com/health/latest/ug/pagnation-of-health-events.html
    """
    detail = envelope.detail
    if detail.get("service") != "EC2" or detail.get("eventTypeCategory") != "scheduledChange":
        return Ignored("health_of_no_concern")
    entities = detail.get("affectedEntities") or ()
    if not isinstance(entities, list) or not all(isinstance(entity, dict) for entity in entities):
        raise Unparseable("`detail.affectedEntities` is not a list of objects")
    starts_at = timestamp(detail.get("startTime"), "detail.startTime")
    updated = detail.get("lastUpdatedTime")
    return Interruption(
        kind=Kind.SCHEDULED_CHANGE,
        instance_ids=_affected(entities),
        event_id=envelope.event_id,
        event_time=envelope.time,
        deadline=starts_at,
        change=ScheduledChange(
            event_arn=envelope.text("eventArn"),
            starts_at=starts_at,
            updated_at=timestamp(updated, "detail.lastUpdatedTime") if updated else envelope.time,
            communication=_PAGE_SUFFIX.sub("", str(detail.get("communicationId") or envelope.event_id)),
            ended=detail.get("statusCode") == "closed",
        ),
    )


def drill(envelope: Envelope) -> Notice:
    """An operator's fire drill: {"kind": "spot" | "rebalance" | "terminate", "instance_ids": [...], "notice_seconds"}.

    It is the same drain; only what would outlast it (replacement, lifecycle calls) is left out.
    """
    kind = DRILL_KINDS.get(envelope.text("kind"))
    if kind is None:
        raise Unparseable(f"`detail.kind` is {envelope.detail['kind']!r}; allowed: {', '.join(DRILL_KINDS)}")
    seconds = envelope.detail.get("notice_seconds", SPOT_NOTICE_SECONDS)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
        raise Unparseable(f"`detail.notice_seconds` is {seconds!r}, not seconds")
    return Interruption(
        kind=kind,
        instance_ids=_instances(envelope),
        event_id=envelope.event_id,
        event_time=envelope.time,
        deadline=None if kind is Kind.REBALANCE else envelope.time + seconds,
        drill=True,
    )


def change_due(envelope: Envelope) -> Notice:
    """A scheduled change that `tick` puts into the queue `before_minutes` ahead of its start."""
    return Interruption(
        kind=Kind.SCHEDULED_CHANGE,
        instance_ids=_instances(envelope),
        event_id=envelope.event_id,
        event_time=envelope.time,
        deadline=timestamp(envelope.detail.get("starts_at"), "detail.starts_at"),
        due=True,
    )


def continuation(envelope: Envelope) -> Notice:
    number, deadline = envelope.detail.get("pass"), envelope.detail.get("deadline")
    if not isinstance(number, int) or not isinstance(deadline, int | float):
        raise Unparseable("`detail.pass` or `detail.deadline` is not a number")
    try:
        kind = Kind(envelope.text("kind"))
    except ValueError as error:
        raise Unparseable(f"`detail.kind`: {error}") from error
    return Continuation(envelope.instance("instance_id")[0], number, kind, deadline)


def timestamp(value: object, name: str) -> float:
    """Unix seconds of an ISO 8601 time (UTC where it says no zone) or, as AWS Health writes it, an RFC 1123 one."""
    if not isinstance(value, str):
        raise Unparseable(f"`{name}` is {value!r}, not a time")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        from email.utils import parsedate_to_datetime  # only AWS Health needs it

        try:
            moment = parsedate_to_datetime(value)
        except ValueError as error:
            raise Unparseable(f"`{name}` is {value!r}, not a time") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def instance_id(value: object, name: str) -> str:
    if not isinstance(value, str) or not _INSTANCE_ID.fullmatch(value):
        raise Unparseable(f"`{name}` is {value!r}, not an instance id")
    return value


def _instances(envelope: Envelope) -> tuple[str, ...]:
    values = envelope.detail.get("instance_ids")
    if not isinstance(values, list) or not values:
        raise Unparseable(f"`detail.instance_ids` is {values!r}, not a list of instance ids")
    return tuple(dict.fromkeys(instance_id(value, "detail.instance_ids") for value in values))


def _affected(entities: list[Mapping[str, Any]]) -> tuple[str, ...]:
    """Ids of the instances among the affected entities, those already resolved left out; a value may be an ARN."""
    values = (str(e.get("entityValue", "")).rpartition("/")[2] for e in entities if e.get("status") != "RESOLVED")
    return tuple(dict.fromkeys(value for value in values if _INSTANCE_ID.fullmatch(value)))
