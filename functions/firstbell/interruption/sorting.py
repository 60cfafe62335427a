"""Each message's wish for each instance, sorted by what the instance's pool wants done. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firstbell.capacity.changes import Change
from firstbell.capacity.drains import Drain, News
from firstbell.interruption.notices import Continuation, Ignored, Interruption
from firstbell.interruption.policies import CordonOnly, Store, answer, stale
from firstbell.interruption.working import Pass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from firstbell.capacity.pools import Pool
    from firstbell.interruption.intake import Asked
    from firstbell.interruption.notices import Message, ScheduledChange
    from firstbell.interruption.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Wish:
    """What one message asks for one instance."""

    message: Message
    ask: News | Continuation


@dataclass(slots=True)
class Sorted:
    wishes: dict[str, list[Wish]] = field(default_factory=dict)
    """Instance id -> what is asked for it, in the batch's order."""
    recommended: list[Pass] = field(default_factory=list)
    """Recommendations that only hold their node back for a while: they have no drain in the ledger."""
    observed: list[Pass] = field(default_factory=list)
    """What would be drained if the pool were not in `observe`."""
    paused: list[Message] = field(default_factory=list)
    """Passes of drains under way that have to wait until the operator resumes Firstbell."""
    changes: list[Change] = field(default_factory=list)
    """Announced for later."""
    ignored: list[tuple[str, str]] = field(default_factory=list)
    """(reason, instance id)"""


def sort_wishes(
    asked: Iterable[Asked], instances: Mapping[str, tuple[str, ...]], around: Surroundings, now: float
) -> Sorted:
    """`instances`: message id -> the instances that it is about."""
    found = Sorted()
    for one in asked:
        if isinstance(one.notice, Interruption):
            _sort_notice(one.message, one.notice, instances[one.message.id], around, now, found)
        elif around.view.paused:
            found.paused.append(one.message)
        else:
            found.wishes.setdefault(one.notice.instance_id, []).append(Wish(one.message, one.notice))
    return found


def _sort_notice(
    message: Message,
    notice: Interruption,
    instance_ids: Iterable[str],
    around: Surroundings,
    now: float,
    found: Sorted,
) -> None:
    stored: dict[str, list[str]] = {}
    for instance_id in instance_ids:
        pool = around.pool_of(instance_id, notice.hook.group if notice.hook else "")
        if pool is None or (notice.hook is None and around.nothing_there(instance_id)):
            found.ignored.append(("foreign_or_gone", instance_id))
            continue
        node = around.nodes.get(instance_id)
        observing = pool.mode == "observe" or around.view.paused
        times = around.hooks.get((notice.hook.group, notice.hook.hook)) if notice.hook else None
        match answer(notice, instance_id, pool, around.group_name(pool), times, now):
            case Ignored(reason):
                found.ignored.append((reason, instance_id))
            case Store():
                stored.setdefault(pool.name, []).append(instance_id)
            case CordonOnly():
                if not observing and node is not None and instance_id not in around.view.drains:
                    found.recommended.append(_recommended(message, notice, pool, instance_id, around))
            case News() as news if stale(news, node_ready=node is not None and node.ready, now=now):
                found.ignored.append(("expired", instance_id))
            case News() as news if observing:
                found.observed.append(_pass(message, _undrained(news), pool, around))
            case News() as news:
                found.wishes.setdefault(instance_id, []).append(Wish(message, news))
    if notice.change is not None and (stored or notice.change.ended):
        found.changes.append(_change(notice.change, stored))


def pass_of(message: Message, drain: Drain, around: Surroundings) -> Pass | None:
    """The pass of a claimed drain; None where its pool is no longer in the operator's file."""
    pool = around.pools.get(drain.pool)
    return None if pool is None else _pass(message, drain, pool, around)


def _pass(message: Message, drain: Drain, pool: Pool, around: Surroundings) -> Pass:
    node = around.nodes.get(drain.instance_id)
    return Pass(
        drain=drain,
        message=message,
        pool=pool,
        group=around.groups.get(pool.name),
        node=node,
        error=around.unreadable,
    )


def _recommended(message: Message, notice: Interruption, pool: Pool, instance_id: str, around: Surroundings) -> Pass:
    ends = notice.deadline or notice.event_time + pool.interruption.rebalance_ttl_minutes * 60
    drain = Drain(instance_id, notice.kind, notice.event_time, pool.name, deadline=ends, drill=notice.drill)
    return _pass(message, drain, pool, around)


def _undrained(news: News) -> Drain:
    return Drain(news.instance_id, news.kind, news.event_time, news.pool, deadline=news.deadline, drill=news.drill)


def _change(announced: ScheduledChange, stored: Mapping[str, list[str]]) -> Change:
    return Change(
        event_arn=announced.event_arn,
        starts_at=announced.starts_at,
        updated_at=announced.updated_at,
        communication=announced.communication,
        instances={} if announced.ended else stored,
    )
