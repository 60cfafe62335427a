"""A drain as the ledger remembers it: one an instance, whatever arrives. Pure; times are Unix seconds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

OVERDUE_SECONDS = 60.0
"""A pass this much overdue has lost its message; whatever message comes next may carry on."""
EVENTS_REMEMBERED = 20
DRILL = "drill"
"""Kind of a drill's cordon: nothing takes such a node away."""
GIVEN_BACK = frozenset({"rebalance", DRILL})
"""Kinds of cordons that tick takes back after `rebalance_ttl_minutes`, unless something else followed."""

STATES: tuple[str, ...] = ("", "stopping", "stopped", "shutting-down", "terminated")
"""EC2's states in the order in which they count; a later one is never taken back."""


class Phase(StrEnum):
    DRAINING = "draining"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Hook:
    """A terminate lifecycle action of ours that waits for this drain."""

    group: str
    name: str
    token: str = ""
    heartbeat_seconds: float = 3600.0
    """The hook's heartbeat timeout: without a heartbeat for so long, Auto Scaling goes on without us."""
    beaten_at: float = 0.0
    """When its time last began to run: its event, or our latest heartbeat."""
    completed: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.group, self.name


@dataclass(frozen=True, slots=True)
class News:
    """What one notice says of one instance."""

    instance_id: str
    kind: str
    event_id: str
    event_time: float
    deadline: float
    """When the instance loses power, or when we stop waiting for its pods."""
    hook: Hook | None = None
    state: str = ""
    drill: bool = False
    pool: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Drain:
    instance_id: str
    kind: str
    """What began it."""
    noticed_at: float
    """Time of the event that began it."""
    pool: str
    deadline: float
    group: str = ""
    node: str = ""
    phase: Phase = Phase.DRAINING
    number: int = 1
    """The pass that is in progress or next."""
    holder: str = ""
    """Id of the queue message that claimed the pass; empty while none has."""
    claimed_until: float = 0.0
    next_at: float = 0.0
    """When the message of the next pass becomes visible, while nobody holds it."""
    kinds: tuple[str, ...] = ()
    drill: bool = False
    event_ids: tuple[str, ...] = ()
    hooks: tuple[Hook, ...] = ()
    state: str = ""
    cordoned_at: float = 0.0
    announced: bool = False
    """Whether Node Draining was said."""
    concluded: bool = False
    """Whether its end was said: a drain that is over and hears more says it again only if there was more to do."""
    deregistered: bool = False
    """Whether load balancers were told to send it nothing more."""
    evicted: int = 0
    """Evictions that were accepted."""
    forced: tuple[str, ...] = ()
    """`namespace/name` of pods deleted past their budget or their own grace."""
    retry_at: Mapping[str, float] = field(default_factory=dict)
    """Pod UID -> not before, for pods whose eviction is misconfigured, denied or throttled."""
    blocked_passes: int = 0
    """Passes in a row in which budgets allowed nothing."""
    not_ready_since: float = 0.0
    replacement: str = ""
    """What was done about a replacement, once decided."""
    version: int = 0
    """Counts writes of the stored item; every write is conditional on the version that was read."""

    def held(self, now: float) -> bool:
        return bool(self.holder) and now < self.claimed_until

    def orphaned(self, now: float) -> bool:
        """Whether no message carries it any more (one was purged, or ran into the DLQ)."""
        since = self.claimed_until if self.holder else self.next_at
        return self.phase is Phase.DRAINING and now > since + OVERDUE_SECONDS

    def under_way(self, now: float) -> bool:
        """Whether anything is to come of it: it is not over, nor lost by its messages and past its deadline."""
        return self.phase is Phase.DRAINING and not (now > self.deadline and self.orphaned(now))


def merge(drain: Drain, news: News) -> Drain:
    """The drain, knowing also what `news` says. The deadline can only get tighter.

    A drill adds nothing to a real drain; a real event takes a drill over, whose deadline was made up.
    """
    if news.drill and not drain.drill:
        return drain
    if drain.drill and not news.drill:
        return replace(restarted(drain, news), phase=drain.phase, number=drain.number)
    known = news.event_id in drain.event_ids
    return replace(
        drain,
        kinds=drain.kinds if news.kind in drain.kinds else (*drain.kinds, news.kind),
        deadline=min(drain.deadline, news.deadline),
        event_ids=drain.event_ids if known else (*drain.event_ids, news.event_id)[-EVENTS_REMEMBERED:],
        hooks=_with_hook(drain.hooks, news.hook),
        state=max(drain.state, news.state, key=STATES.index),
    )


def after_pass(stored: Drain, done: Drain) -> Drain:
    """`stored` with what the holder's pass did to `done`; others may have merged news into it meanwhile."""
    ours = {(hook.key, hook.token): hook for hook in done.hooks}
    return replace(
        stored,
        deadline=min(stored.deadline, done.deadline),
        node=done.node,
        hooks=tuple(ours.get((hook.key, hook.token), hook) for hook in stored.hooks),
        cordoned_at=done.cordoned_at,
        announced=done.announced,
        concluded=done.concluded,
        deregistered=done.deregistered,
        evicted=done.evicted,
        forced=done.forced,
        retry_at=done.retry_at,
        blocked_passes=done.blocked_passes,
        not_ready_since=done.not_ready_since,
        replacement=done.replacement,
    )


def released(drain: Drain, next_at: float) -> Drain:
    """After a pass, when the next pass's message is in the queue."""
    return replace(drain, number=drain.number + 1, holder="", claimed_until=0.0, next_at=next_at)


def postponed(drain: Drain, next_at: float) -> Drain:
    """After a pass that could not be done, when a new message for it is in the queue."""
    return replace(drain, holder="", claimed_until=0.0, next_at=next_at)


def finished(drain: Drain) -> Drain:
    """After the last pass."""
    return replace(drain, phase=Phase.DONE, holder="", claimed_until=0.0, next_at=0.0)


def drain_as_document(drain: Drain) -> dict[str, Any]:
    return asdict(drain)


def drain_from_document(document: Mapping[str, Any]) -> Drain:
    """Reads what `drain_as_document` wrote. Fields that this version does not know are dropped, absent ones default."""
    known = {name: document[name] for name in Drain.__dataclass_fields__ if name in document}
    for name in ("kinds", "event_ids", "forced"):
        known[name] = tuple(known.get(name, ()))
    fields = Hook.__dataclass_fields__
    known["hooks"] = tuple(Hook(**{n: hook[n] for n in fields if n in hook}) for hook in known.get("hooks", ()))
    known["phase"] = Phase(known.get("phase", Phase.DRAINING))
    return Drain(**known)


def begun(news: News) -> Drain:
    return Drain(
        instance_id=news.instance_id,
        kind=news.kind,
        noticed_at=news.event_time,
        pool=news.pool,
        group=news.group,
        kinds=(news.kind,),
        deadline=news.deadline,
        drill=news.drill,
        event_ids=(news.event_id,),
        hooks=_with_hook((), news.hook),
        state=news.state,
    )


def restarted(drain: Drain, news: News) -> Drain:
    """`drain` again from its next pass on, for what `news` says: an old deadline or reason is not this one's.

    What was done to the node stands, so that a drain which is over and hears more goes through quietly.
    """
    return replace(
        drain,
        phase=Phase.DRAINING,
        number=drain.number + 1,
        kind=news.kind,
        kinds=(news.kind,),
        noticed_at=news.event_time,
        deadline=news.deadline,
        drill=news.drill,
        event_ids=(*drain.event_ids, news.event_id)[-EVENTS_REMEMBERED:],
        hooks=_with_hook(drain.hooks, news.hook),
        state=max(drain.state, news.state, key=STATES.index),
        evicted=0,
        forced=(),
        retry_at={},
        blocked_passes=0,
        not_ready_since=0.0,
    )


def _with_hook(hooks: tuple[Hook, ...], new: Hook | None) -> tuple[Hook, ...]:
    """A lifecycle action is one (group, hook) an instance; a second event about it, flat or not, is the same action."""
    if new is None or any(hook.key == new.key and not hook.completed for hook in hooks):
        return hooks
    if any(hook.key == new.key and hook.token == new.token for hook in hooks):
        return hooks
    return (*(hook for hook in hooks if hook.key != new.key), new)
