"""What is written to a group: desired raised, or what could not be launched taken back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firstbell.capacity.failures import FALLS_BACK
from firstbell.errors import RetryLater
from firstbell.reconcile.withdrawal import release, withdraw

if TYPE_CHECKING:
    from firstbell.capacity.groups import Group
    from firstbell.capacity.pool_state import PoolState
    from firstbell.capacity.sight import PoolSight
    from firstbell.capacity.sizing import SizePlan
    from firstbell.cloud.autoscaling import AutoScaling
    from firstbell.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Acted:
    state: PoolState
    busy: str = ""
    """AWS's words where the group would not be changed now."""
    again: bool = False
    """Whether another look is due at once."""


def act(
    autoscaling: AutoScaling,
    pool: str,
    group: Group,
    state: PoolState,
    seen: PoolSight,
    plan: SizePlan,
    telemetry: Telemetry,
    now: float,
    *,
    being_refreshed: bool,
) -> Acted:
    """Does what the plan says. Raises Conflict where the group's limits changed since they were read: look again.

    While an instance refresh runs, units that are not launched are its own replacements, so none is withdrawn.
    """
    if plan.raises:
        return _raise(autoscaling, pool, group, state, plan, telemetry, now)
    falls_back = state.backs_off(now) and state.failure_reason in FALLS_BACK
    if falls_back and group.unlaunched_units and seen.sight.known and not being_refreshed:
        instance_of = {node.name: node.instance_id for node in seen.nodes}
        taken_back = withdraw(autoscaling, group, state, {instance_of[p.node_name] for p in seen.bound})
        if taken_back.units:
            telemetry.emit("UnitsWithdrawn", taken_back.units, pool=pool)
        return Acted(taken_back.state, again=taken_back.again)
    state = release(autoscaling, group, state)
    return Acted(replace(state, wanted=group.desired if plan.coverage else 0))


def _raise(
    autoscaling: AutoScaling,
    pool: str,
    group: Group,
    state: PoolState,
    plan: SizePlan,
    telemetry: Telemetry,
    now: float,
) -> Acted:
    """Writes desired once, and reads it again: somebody who lowers it at the same moment is noticed."""
    lowered = group.desired < state.wanted
    try:
        autoscaling.set_desired(group.name, plan.desired)
    except RetryLater as error:
        return Acted(state, busy=str(error))
    telemetry.emit("UnitsRaised", plan.desired - plan.read, pool=pool)
    after = autoscaling.describe([group.name]).get(group.name, group)
    if lowered or after.desired < plan.desired:
        state = state.undone(now)
        telemetry.emit("OtherWriterUndone", pool=pool)
    return Acted(replace(state, wanted=plan.desired, wrote=(plan.read, plan.desired, now)))
