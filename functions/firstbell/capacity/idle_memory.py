"""What is remembered of a pool between two evaluations of its idle nodes. Pure; times are Unix seconds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LEAVING_SECONDS = 120.0
"""How long a removal that was set out on may still be under way: longer than any call, with its retries, lasts."""


@dataclass(frozen=True, slots=True)
class IdleMemory:
    """Part of `PoolState`. What undoes our writes is remembered before they are made."""

    quiet_since: float = 0.0
    """When the pool was first seen in the quiet stretch that lasts; 0 while it is up."""
    idle_since: Mapping[str, float] = field(default_factory=dict)
    """Instance id -> since when each evaluation has found its node without user pods."""
    marked: tuple[str, ...] = ()
    """Instances whose nodes may carry our idle cordon."""
    leaving: Mapping[str, float] = field(default_factory=dict)
    """Instance id -> when we set out to remove it: until long after, nobody un-cordons its node."""
    min_before: int | None = None
    """MinSize as the operator had it, while we keep it lower."""
    min_lowered_at: float = 0.0
    """When it was lowered; 0 = not yet."""
    min_is_theirs: bool = False
    """Whether the operator set MinSize during this quiet stretch: it is left alone until the stretch ends."""
    kept: str = ""
    """Fingerprint of the last Pool Kept, so that the same is said once."""
    zero_said: bool = False
    removed: int = 0
    """Nodes that we removed in this quiet stretch."""
    away: int = 0
    """Those of them that nothing has replaced yet."""
    counted_at: float = 0.0
    """Until when the node-hours of those that are away have been counted."""
    day: str = ""
    """The local day that the next two are of."""
    day_nodes: int = 0
    day_node_hours: float = 0.0
    blocked_since: float = 0.0
    """Since when some node without user pods has been held by what only a person can mend; 0 = none is."""

    def is_leaving(self, instance_id: str, now: float) -> bool:
        return now - self.leaving.get(instance_id, -LEAVING_SECONDS) < LEAVING_SECONDS

    def seen_idle(self, instance_ids: Iterable[str], now: float) -> IdleMemory:
        """After an evaluation that found these nodes, and no others, without user pods."""
        return replace(self, idle_since={i: self.idle_since.get(i, now) for i in instance_ids})

    def counted(self, newcomers: int, now: float, day: str) -> tuple[IdleMemory, float]:
        """With the node-hours since the last count, which are returned too. A node that came takes the place of one
        that is away: from then on nothing is saved by that one."""
        hours = self.away * max(0.0, now - self.counted_at) / 3600 if self.counted_at else 0.0
        today = self if day == self.day else replace(self, day=day, day_nodes=0, day_node_hours=0.0)
        memory = replace(
            today,
            away=max(0, self.away - newcomers),
            counted_at=now,
            day_node_hours=today.day_node_hours + hours,
        )
        return memory, hours

    def without(self, instance_id: str) -> IdleMemory:
        """After the instance was removed by us."""
        return replace(
            self,
            idle_since={i: since for i, since in self.idle_since.items() if i != instance_id},
            marked=tuple(i for i in self.marked if i != instance_id),
            removed=self.removed + 1,
            away=self.away + 1,
            day_nodes=self.day_nodes + 1,
        )

    def while_up(self) -> IdleMemory:
        """Once the quiet stretch is over. What is left to restore stays."""
        return IdleMemory(
            idle_since=self.idle_since,
            marked=self.marked,
            leaving=self.leaving,
            min_before=self.min_before,
            min_lowered_at=self.min_lowered_at,
            day=self.day,
            day_nodes=self.day_nodes,
            day_node_hours=self.day_node_hours,
        )

    @property
    def owes(self) -> bool:
        """Whether something that we changed is left to put back."""
        return bool(self.marked) or self.min_before is not None
