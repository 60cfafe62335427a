"""What becomes of each node of a pool in its quiet window, with the reason on every branch. Pure.

A node goes in two looks. The first cordons it, the second, at a later evaluation, finds it still idle: a pod that the
scheduler was binding meanwhile is seen by then, and the node is un-cordoned instead (case 51).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from firstbell.idle.verdicts import Finding, Step, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from firstbell.capacity.groups import Group
    from firstbell.capacity.idle_memory import IdleMemory
    from firstbell.capacity.idle_policy import IdlePolicy


def decide(
    verdicts: Iterable[Verdict],
    policy: IdlePolicy,
    memory: IdleMemory,
    group: Group,
    *,
    needed: Collection[str],
    refreshing: bool,
    now: float,
) -> list[Verdict]:
    """The verdicts with what is to be done about each. `needed` are the instances that pods to come have need of."""

    def settled(verdict: Verdict) -> Verdict:
        if verdict.finding is not Finding.IDLE:
            return verdict
        if verdict.instance_id in needed:
            return replace(verdict, finding=Finding.NEEDED, detail="pods that are to come, or wait, have need of it")
        idle_for = now - memory.idle_since.get(verdict.instance_id, now)
        if idle_for < policy.idle_minutes * 60:
            return replace(verdict, finding=Finding.YOUNG, detail=f"idle for {idle_for / 60:.0f} minutes")
        finding, detail = next(_hindrances(verdict, memory, group, refreshing=refreshing), (Finding.IDLE, ""))
        return replace(verdict, finding=finding, detail=detail)

    judged = [settled(verdict) for verdict in verdicts]
    return [replace(verdict, step=_step(verdict, policy, memory, now)) for verdict in judged]


def _hindrances(
    verdict: Verdict, memory: IdleMemory, group: Group, *, refreshing: bool
) -> Iterator[tuple[Finding, str]]:
    """What about the group forbids that this idle node goes now."""
    if refreshing:
        yield Finding.INSTANCE_REFRESH, "an instance refresh replaces members now"
    if scaling_in(group):
        units = f"{group.living_units} units live and {group.desired} are desired"
        yield Finding.SCALING_IN, f"{units}: Auto Scaling chooses who goes"
    if rebalances(group, verdict.instance_id):
        yield (
            Finding.AZ_REBALANCE,
            "AZRebalance could end an instance in another zone in answer; suspend it, or use one zone",
        )
    if memory.min_is_theirs and group.desired - verdict.candidate.member.weight < group.min_size:
        yield Finding.MIN_SIZE, f"MinSize was set to {group.min_size} during this quiet window"


def scaling_in(group: Group) -> bool:
    """Whether Auto Scaling is about to end members by its own choice: then one fewer desired would end one more of
    them (case 36). Instances are whole, so a group may exceed desired by less than its lightest member."""
    lightest = min((m.weight for m in group.members if m.counted), default=1)
    return group.living_units - group.desired >= lightest


def rebalances(group: Group, instance_id: str) -> bool:
    """Whether Auto Scaling may end another member in answer to this one's removal.

    Zones that differ by more than one make AZRebalance end a member where there are most, chosen without regard to its
    pods; members that are protected from scale-in are left alone. Every other member has to be, busy or not: one that
    is idle now may have a student by the time that Auto Scaling comes to it.
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/auto-scaling-benefits.html#AutoScalingBehavior.InstanceUsage
    """
    if len(group.zones) <= 1 or "AZRebalance" in group.suspended:
        return False
    others = (m for m in group.members if m.counted and m.instance_id != instance_id)
    return any(not m.protected_from_scale_in for m in others)


def _step(verdict: Verdict, policy: IdlePolicy, memory: IdleMemory, now: float) -> Step:
    marked_at = verdict.candidate.marked_at
    if verdict.finding is Finding.LEAVING:
        return Step.KEEP
    if verdict.finding is not Finding.IDLE:
        # A run that died may have ended the instance a moment ago: no pod must be let onto its node.
        doomed = memory.is_leaving(verdict.instance_id, now)
        return Step.KEEP if marked_at is None or doomed else Step.UNCORDON
    if marked_at is None:
        return Step.CORDON
    return Step.REMOVE if now - marked_at >= policy.settle_seconds else Step.WAIT
