"""Lifecycle hooks: members held in Pending:Wait or Terminating:Wait until every lifecycle action has a result.

https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks.html
"""

from __future__ import annotations

from localcloud.fleet.announcements import lifecycle_detail, lifecycle_notice
from localcloud.fleet.fleet import Fleet
from localcloud.fleet.state import LAUNCHING, Group, Member, Wait


def hold(fleet: Fleet, group: Group, member: Member, transition: str, state: str) -> bool:
    """Hold the member by the group's hooks of this transition; False where it has none."""
    hooks = [hook for hook in group.hooks.values() if hook.transition == transition]
    if not hooks:
        return False
    member.lifecycle = f"{state}:Wait"
    member.activity.status, member.activity.progress = "MidLifecycleAction", 60
    kind = (
        "EC2 Instance-launch Lifecycle Action" if transition == LAUNCHING else "EC2 Instance-terminate Lifecycle Action"
    )
    for hook in hooks:
        wait = Wait(hook, deadline=fleet.now + hook.heartbeat_seconds, last=fleet.now + hook.global_seconds)
        member.waits.append(wait)
        fleet.journal.event("waiting", group.name, member.instance_id, hook=hook.name, token=wait.token)
        fleet.tell_group(group, kind, lifecycle_detail(member, wait))
        if hook.target_arn:
            fleet.announcer.notify(hook.target_arn, lifecycle_notice(member, wait, fleet.account, fleet.now))
    return True


def heartbeat(fleet: Fleet, wait: Wait) -> None:
    """Begin the heartbeat timeout anew, but never past the global timeout."""
    wait.deadline = min(fleet.now + wait.hook.heartbeat_seconds, wait.last)


def complete(fleet: Fleet, group: Group, member: Member, wait: Wait, result: str, because: str) -> None:
    """Give the action its result. ABANDON ends the other actions of the member too."""
    wait.result = result
    fleet.journal.event(
        "hook-completed", group.name, member.instance_id, hook=wait.hook.name, result=result, because=because
    )
    if result == "ABANDON":
        for other in member.waits:
            other.result = other.result or "ABANDON"


def held(member: Member) -> bool:
    return any(not wait.result for wait in member.waits)


def abandoned_wait(member: Member) -> Wait | None:
    return next((wait for wait in member.waits if wait.result == "ABANDON"), None)


def expire(fleet: Fleet, group: Group, member: Member) -> None:
    """Give overdue actions their hook's default result."""
    for wait in member.waits:
        if not wait.result and fleet.now >= wait.deadline:
            complete(fleet, group, member, wait, wait.hook.default_result, "Heartbeat Timeout Elapsed")


def next_deadline(member: Member) -> float | None:
    return min((wait.deadline for wait in member.waits if not wait.result), default=None)
