"""What is remembered of a pool between runs. Pure; written only by the holder of the pool's lease."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from firstbell.capacity.idle_memory import IdleMemory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from firstbell.capacity.failures import LaunchFailure

FIRST_BACKOFF_SECONDS = 5 * 60
LONGEST_BACKOFF_SECONDS = 30 * 60
BLOCKED_SECONDS = 2 * 60
"""Outlives one tick, so that a pool that is blocked looks so to its neighbours in between."""
UNDO_WINDOW_SECONDS = 15 * 60
UNDOS_THAT_ALARM = 3
JOIN_LIMIT_SECONDS = 10 * 60
"""A member that has not joined after this stays in the base and covers nothing."""
_SAMPLES_KEPT = 50
DEFAULT_LEAD_SECONDS = 5 * 60
"""An "auto" lead before anything was measured."""


@dataclass(frozen=True, slots=True)
class PoolState:
    first_seen: Mapping[str, float] = field(default_factory=dict)
    """Instance id -> when it was first seen as a member (DescribeAutoScalingGroups gives no launch time)."""
    served: tuple[str, ...] = ()
    """Members whose node has been usable: whatever becomes of it, it did join."""
    unlaunched_since: float = 0.0
    """Since when units have been asked for and nothing was launched; 0 = none are."""
    backoff_until: float = 0.0
    backoff_seconds: float = 0.0
    failure_reason: str = ""
    failure_detail: str = ""
    failure_at: float = 0.0
    wanted: int = 0
    """Desired capacity as we last left it for live reservations; read lower while needed, another writer lowered it."""
    wrote: tuple[int, int, float] = (0, 0, 0.0)
    """Our last write of desired: what was read just before, what was written, and when."""
    undos: tuple[float, ...] = ()
    protected: tuple[str, ...] = ()
    """Instances that we scale-in-protected for a withdrawal and have yet to release."""
    holds: bool = False
    """Whether nodes of the pool may carry holds that we set."""
    overflow: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Fallback pool -> reference -> pods that this pool cannot take."""
    covered: Mapping[str, int] = field(default_factory=dict)
    """Reference of another pool's overflow -> pods that Ready nodes here cover (arrived ones included)."""
    accepted: Mapping[str, int] = field(default_factory=dict)
    """The same -> pods that are covered or will be, by nodes on their way."""
    facts: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    """Instance type -> "allocatable" and "overhead" of the last live node of that type in this pool."""
    ready_seconds: tuple[float, ...] = ()
    """Latest measured seconds from request to Ready."""
    idle: IdleMemory = field(default_factory=IdleMemory)

    def observed(
        self, member_ids: Iterable[str], unlaunched_units: int, now: float, *, usable_ids: Iterable[str] = ()
    ) -> PoolState:
        """With the members that are there now: newcomers dated, those gone forgotten."""
        members = set(member_ids)
        waiting_since = self.unlaunched_since if members <= self.first_seen.keys() else now
        return replace(
            self,
            first_seen={i: self.first_seen.get(i, now) for i in sorted(members)},
            served=tuple(sorted(members & {*self.served, *usable_ids})),
            unlaunched_since=(waiting_since or now) if unlaunched_units else 0.0,
        )

    def backs_off(self, now: float) -> bool:
        return now < self.backoff_until

    def failed(self, failure: LaunchFailure) -> PoolState:
        """After a launch failure that was not known yet: back off 5 minutes, doubling, at most 30.

        Failures while it backs off change nothing but the words: they are of one burst (a zone each), or Auto Scaling's
        own tries, and only a try of ours that fails again makes the pause longer.
        """
        if failure.at <= self.failure_at:
            return self
        told = replace(self, failure_reason=str(failure.reason), failure_detail=failure.detail, failure_at=failure.at)
        if self.backs_off(failure.at):
            return told
        seconds = min(max(FIRST_BACKOFF_SECONDS, 2 * self.backoff_seconds), LONGEST_BACKOFF_SECONDS)
        return replace(told, backoff_until=failure.at + seconds, backoff_seconds=seconds)

    def blocked(self, failure: LaunchFailure, now: float) -> PoolState:
        """While something stands in the way that no waiting heals: looked at again by every run."""
        return replace(
            self,
            backoff_until=max(self.backoff_until, now + BLOCKED_SECONDS),
            failure_reason=str(failure.reason),
            failure_detail=failure.detail,
        )

    def recovered(self) -> PoolState:
        """After a launch that succeeded."""
        return replace(self, backoff_until=0.0, backoff_seconds=0.0, failure_reason="", failure_detail="")

    def undone(self, now: float) -> PoolState:
        recent = tuple(at for at in self.undos if at > now - UNDO_WINDOW_SECONDS)
        return replace(self, undos=(*recent, now))

    def contested(self, now: float) -> bool:
        """Whether another writer keeps lowering the group: three undos within 15 minutes."""
        return sum(at > now - UNDO_WINDOW_SECONDS for at in self.undos) >= UNDOS_THAT_ALARM

    def measured(self, seconds: float) -> PoolState:
        return replace(self, ready_seconds=(*self.ready_seconds, seconds)[-_SAMPLES_KEPT:])

    def lead_seconds(self, fixed_minutes: float | None) -> float:
        """The pool's lead: fixed, or "auto" = p95 of the measured request-to-Ready seconds + 10 %."""
        if fixed_minutes is not None:
            return fixed_minutes * 60
        if not self.ready_seconds:
            return DEFAULT_LEAD_SECONDS
        ordered = sorted(self.ready_seconds)
        nearest_rank = -(-95 * len(ordered) // 100)
        return ordered[nearest_rank - 1] * 1.1

    def as_document(self) -> dict[str, Any]:
        return asdict(self)


def state_from_document(document: Mapping[str, Any]) -> PoolState:
    """Reads what `as_document` wrote. Fields that this version does not know are dropped, absent ones take defaults."""
    known = {name: document[name] for name in PoolState.__dataclass_fields__ if name in document}
    for name in ("served", "undos", "protected", "ready_seconds", "wrote"):
        if name in known:
            known[name] = tuple(known[name])
    if "idle" in known:
        known["idle"] = _idle_from_document(known["idle"])
    return PoolState(**known)


def _idle_from_document(document: Mapping[str, Any]) -> IdleMemory:
    known = {name: document[name] for name in IdleMemory.__dataclass_fields__ if name in document}
    return IdleMemory(**known | {"marked": tuple(known.get("marked", ()))})
