"""What is said of a quiet pool, each thing once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

from firstbell.cloud.bus import OutcomeEvent
from firstbell.idle.verdicts import BLOCKING, Finding
from firstbell.outcomes import NodeKept, PodKeeping, PoolKept, PoolScaledToZero

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firstbell.capacity.groups import Group
    from firstbell.capacity.idle_memory import IdleMemory
    from firstbell.capacity.pools import Pool
    from firstbell.cloud.bus import Bus
    from firstbell.idle.calendar import Hours
    from firstbell.idle.verdicts import Verdict
    from firstbell.outcomes import Outcome
    from firstbell.telemetry import Telemetry

ON_THEIR_WAY = (Finding.IDLE, Finding.YOUNG, Finding.LEAVING)
"""Findings about nodes that will go by themselves."""


class _Common(TypedDict):
    cluster: str
    pool: str
    rule: str
    seconds_since_cause: float


@dataclass(frozen=True, slots=True)
class Teller:
    bus: Bus
    cluster: str
    telemetry: Telemetry

    def tell(
        self, pool: Pool, hours: Hours, group: Group, verdicts: Sequence[Verdict], memory: IdleMemory, now: float
    ) -> IdleMemory:
        """Says and measures how a quiet pool stands. Returns the memory with what was said."""
        outcomes: list[Outcome] = []
        common: _Common = {
            "cluster": self.cluster,
            "pool": pool.name,
            "rule": hours.rule,
            "seconds_since_cause": round(now - memory.quiet_since, 3),
        }
        stretch = f"{pool.name}/{memory.quiet_since:.3f}"
        kept = [_kept(v) for v in verdicts if pool.mode == "observe" or v.finding not in ON_THEIR_WAY]
        fingerprint = _fingerprint(kept)
        if kept and fingerprint != memory.kept:
            outcomes.append(
                PoolKept(
                    **common,
                    outcome_id=f"{stretch}/kept/{fingerprint}",
                    nodes=kept,
                    nodes_removed=memory.removed,
                    mode=pool.mode,
                )
            )
        at_zero = not group.members and not group.desired
        if at_zero and memory.removed and not memory.zero_said:
            outcomes.append(
                PoolScaledToZero(
                    **common,
                    outcome_id=f"{stretch}/zero/{memory.removed}",
                    nodes_removed=memory.removed,
                    min_size=group.min_size if memory.min_before is None else memory.min_before,
                )
            )
        if outcomes:
            self.bus.publish([OutcomeEvent(o.DETAIL_TYPE, o.as_detail()) for o in outcomes])
            self.telemetry.log_outcomes(outcomes)
        memory = replace(memory, kept=fingerprint, zero_said=at_zero and (memory.zero_said or bool(memory.removed)))
        return self._measure(pool, verdicts, memory, now)

    def _measure(self, pool: Pool, verdicts: Sequence[Verdict], memory: IdleMemory, now: float) -> IdleMemory:
        blocked = any(v.finding in BLOCKING for v in verdicts)
        since = (memory.blocked_since or now) if blocked else 0.0
        self.telemetry.emit("IdleBlockedSeconds", now - since if blocked else 0.0, pool=pool.name)
        for finding in {v.finding for v in verdicts} - set(ON_THEIR_WAY):
            count = sum(v.finding is finding for v in verdicts)
            self.telemetry.emit("NodesKept", count, pool=pool.name, reason=str(finding))
        return replace(memory, blocked_since=since)


def _kept(verdict: Verdict) -> NodeKept:
    return NodeKept(
        node=verdict.node_name,
        instance_id=verdict.instance_id,
        reason=str(verdict.finding),
        detail=verdict.detail,
        pods=[PodKeeping(pod=holder.pod, why=holder.why) for holder in verdict.holders],
    )


def _fingerprint(kept: Sequence[NodeKept]) -> str:
    """Changes when other nodes are kept, or for other reasons or pods."""
    said = sorted((k.instance_id, k.reason, *sorted(p.pod for p in k.pods)) for k in kept)
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16] if said else ""
