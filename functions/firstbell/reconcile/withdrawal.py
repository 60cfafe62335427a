"""The one time that desired is written lower: taking back units that could not be launched, so that late nodes do not
join a pool whose pods went to a fallback pool.

It goes in looks, each of which is remembered before the next, so that a protection that we set is never forgotten:
remember whom to protect; protect them and lower; release them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from firstbell.capacity.groups import Group
    from firstbell.capacity.pool_state import PoolState
    from firstbell.cloud.autoscaling import AutoScaling


@dataclass(frozen=True, slots=True)
class Withdrawal:
    state: PoolState
    units: int = 0
    """Units taken back by this look."""
    again: bool = False
    """Whether another look is due at once."""


def withdraw(autoscaling: AutoScaling, group: Group, state: PoolState, busy: Collection[str]) -> Withdrawal:
    """One look of taking back the group's unlaunched units. `busy` are the instances that user pods are on.

    They are scale-in-protected first (only InService members can be: API_SetInstanceProtection). Should a launch
    succeed at the last moment, Auto Scaling then ends only a member that nobody works on. Never below what lives, as it
    is read right before, nor below MinSize.
    """
    to_protect = {m.instance_id for m in group.members if m.lifecycle == "InService" and m.instance_id in busy}
    to_protect -= {m.instance_id for m in group.members if m.protected_from_scale_in} - set(state.protected)
    if not to_protect <= set(state.protected):
        return Withdrawal(replace(state, protected=tuple(sorted(to_protect | set(state.protected)))), again=True)
    if to_protect:
        autoscaling.set_protection(group.name, sorted(to_protect), protected=True)
    now = autoscaling.describe([group.name])[group.name]
    target = max(now.living_units, now.min_size)
    if target >= now.desired:
        return Withdrawal(state)
    autoscaling.set_desired(group.name, target)
    return Withdrawal(replace(state, wanted=0), units=now.desired - target, again=bool(state.protected))


def release(autoscaling: AutoScaling, group: Group, state: PoolState) -> PoolState:
    """Lifts the protections that a withdrawal set, once nothing is left to withdraw."""
    if not state.protected or group.unlaunched_units:
        return state
    ours = sorted(
        m.instance_id for m in group.members if m.lifecycle == "InService" and m.instance_id in state.protected
    )
    if ours:
        autoscaling.set_protection(group.name, ours, protected=False)
    return replace(state, protected=())
