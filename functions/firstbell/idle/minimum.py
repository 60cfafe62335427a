"""MinSize: lowered while the pool is quiet, and as the operator had it when that ends. Pure.

What the operator had is remembered before it is lowered, so that a run that dies in between restores it all the same.
If MinSize reads otherwise than we left it, the operator set it, and from then on it is theirs (case 59). MaxSize is
never touched.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firstbell.capacity.idle_memory import IdleMemory

LOWERED = 0
TAKES_EFFECT_SECONDS = 15 * 60
"""How long EKS may take to apply a change of a managed node group; until then the old value may still be read."""


def noticed(memory: IdleMemory, current: int, *, managed: bool, now: float) -> IdleMemory:
    """With what MinSize reads as now, in a quiet window: ours still, or set by the operator meanwhile."""
    if memory.min_before is None:
        return memory
    if current == LOWERED:
        return replace(memory, min_lowered_at=memory.min_lowered_at or now)
    if not memory.min_lowered_at:
        return replace(memory, min_before=current)
    if managed and current == memory.min_before and now - memory.min_lowered_at < TAKES_EFFECT_SECONDS:
        return memory
    return replace(memory, min_before=None, min_lowered_at=0.0, min_is_theirs=True)


def must_be_lowered(memory: IdleMemory, current: int) -> bool:
    """Whether MinSize stands in the way of idle nodes, and is ours to lower."""
    return current > LOWERED and not memory.min_is_theirs and not memory.min_lowered_at


def to_restore(memory: IdleMemory, current: int, max_size: int) -> int | None:
    """What MinSize has to be again; None where it is not ours to change, or is so already."""
    if memory.min_before is None or current != LOWERED:
        return None
    return min(memory.min_before, max_size) or None


def still_takes_effect(memory: IdleMemory, current: int, *, managed: bool, now: float) -> bool:
    """Whether our lowering may yet be applied, so that nothing is restored before that."""
    return (
        managed
        and memory.min_before is not None
        and current == memory.min_before
        and now - memory.min_lowered_at < TAKES_EFFECT_SECONDS
    )
