"""Auto Scaling in memory."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from firstbell.capacity.groups import Member
from firstbell.cloud.autoscaling import DETACH_PER_CALL, PROTECT_PER_CALL, AutoScaling, LifecycleAction
from firstbell.errors import Conflict, NotFound
from tests.fakes.faults import Call, Faults

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from firstbell.capacity.groups import Activity, Group
    from firstbell.cloud.autoscaling import LifecycleHook


class FakeAutoScaling(AutoScaling):
    """Groups that tests put there and calls change. Nothing launches by itself: `launch` does what AWS would."""

    def __init__(
        self,
        groups: Iterable[Group] = (),
        *,
        clock: Callable[[], float] = lambda: 0.0,
        faults: Faults | None = None,
    ) -> None:
        self.clock = clock
        self.faults = faults or Faults()
        self.calls: list[Call] = []
        self.groups: dict[str, Group] = {group.name: group for group in groups}
        self.activity_list: dict[str, list[Activity]] = {}
        """Group -> its activities, in any order."""
        self.hooks: dict[str, list[LifecycleHook]] = {}
        self.active_actions: set[tuple[str, str, str]] = set()
        """(group, hook, instance id) of the actions that wait."""
        self.completed: list[tuple[LifecycleAction, str]] = []
        self.refreshing: set[str] = set()
        self._numbers = itertools.count(1)

    # what a test, or AWS, does to the groups

    def launch(self, name: str, instances: int | None = None, *, instance_type: str = "m5.large") -> list[str]:
        """Bring the group to its desired units (or add at most `instances`), InService at once; the new ids. Each has
        the first type of the group, or `instance_type`."""
        launched: list[str] = []
        while self.groups[name].unlaunched_units > 0 and (instances is None or len(launched) < instances):
            group = self.groups[name]
            kind = group.instance_types[0] if group.instance_types else instance_type
            number = next(self._numbers)
            zone = group.zones[number % len(group.zones)] if group.zones else "us-west-2a"
            member = Member(f"i-{number:017x}", "InService", kind, zone, weight=group.weights.get(kind, 1))
            self.groups[name] = replace(group, members=(*group.members, member))
            launched.append(member.instance_id)
        return launched

    def vanish(self, instance_id: str) -> None:
        """The instance is gone (Spot took it); its group still desires it."""
        group = self._group_of(instance_id)
        self._keep(group.name, [m for m in group.members if m.instance_id != instance_id])

    # what the code under test reads

    def describe(self, names: Collection[str]) -> dict[str, Group]:
        with self._called("describe", tuple(names)):
            return {name: self.groups[name] for name in names if name in self.groups}

    def activities(self, name: str, since: float) -> list[Activity]:
        with self._called("activities", name, since):
            recent = [activity for activity in self.activity_list.get(name, ()) if activity.started_at >= since]
            return sorted(recent, key=lambda activity: activity.started_at, reverse=True)

    def instance_refresh_running(self, name: str) -> bool:
        with self._called("instance_refresh_running", name):
            return name in self.refreshing

    def lifecycle_hooks(self, name: str) -> list[LifecycleHook]:
        with self._called("lifecycle_hooks", name):
            return list(self.hooks.get(name, ()))

    # what the code under test does

    def set_desired(self, name: str, units: int) -> None:
        with self._called("set_desired", name, units):
            group = self._group(name)
            if not group.min_size <= units <= group.max_size:
                raise Conflict(f"{units} units are outside of {group.min_size}..{group.max_size} of {name}")
            self.groups[name] = replace(group, desired=units)

    def update_min_size(self, name: str, units: int) -> None:
        """As AWS does, raises desired where it is below the new minimum."""
        with self._called("update_min_size", name, units):
            group = self._group(name)
            if units > group.max_size:
                raise Conflict(f"a minimum of {units} units is above the maximum of {name}")
            self.groups[name] = replace(group, min_size=units, desired=max(group.desired, units))

    def terminate_with_decrement(self, instance_id: str) -> None:
        with self._called("terminate_with_decrement", instance_id):
            group = self._group_of(instance_id)
            member = next(m for m in group.members if m.instance_id == instance_id)
            self._decrement(group, member.weight)
            self._keep(group.name, [m for m in group.members if m.instance_id != instance_id])

    def detach(self, name: str, instance_ids: Sequence[str], *, decrement: bool) -> None:
        """One recorded call for each twenty, as the API has it."""
        for chunk in _chunks(instance_ids, DETACH_PER_CALL):
            with self._called("detach", name, chunk, decrement):
                group = self._group(name)
                leaving = self._in_service(group, chunk)
                if decrement:
                    self._decrement(group, sum(member.weight for member in leaving))
                self._keep(name, [member for member in group.members if member not in leaving])

    def set_protection(self, name: str, instance_ids: Sequence[str], *, protected: bool) -> None:
        """One recorded call for each fifty, as the API has it."""
        for chunk in _chunks(instance_ids, PROTECT_PER_CALL):
            with self._called("set_protection", name, chunk, protected):
                group = self._group(name)
                chosen = self._in_service(group, chunk)
                self._keep(
                    name,
                    [replace(m, protected_from_scale_in=protected) if m in chosen else m for m in group.members],
                )

    def complete_lifecycle_action(
        self, action: LifecycleAction, result: Literal["CONTINUE", "ABANDON"] = "CONTINUE"
    ) -> bool:
        with self._called("complete_lifecycle_action", action, result):
            key = (action.group, action.hook, action.instance_id)
            if key not in self.active_actions:
                return False
            self.active_actions.discard(key)
            self.completed.append((action, result))
            return True

    def heartbeat(self, action: LifecycleAction) -> bool:
        with self._called("heartbeat", action):
            return (action.group, action.hook, action.instance_id) in self.active_actions

    def _called(self, name: str, *args: Any) -> Any:
        return self.faults.around(self.calls, name, *args)

    def _group(self, name: str) -> Group:
        if name not in self.groups:
            raise NotFound(f"group {name}")
        return self.groups[name]

    def _group_of(self, instance_id: str) -> Group:
        for group in self.groups.values():
            if any(member.instance_id == instance_id for member in group.members):
                return group
        raise NotFound(f"no managed instance {instance_id}")

    def _in_service(self, group: Group, instance_ids: Collection[str]) -> list[Member]:
        chosen = [m for m in group.members if m.instance_id in instance_ids and m.lifecycle == "InService"]
        if len(chosen) != len(instance_ids):
            raise Conflict(f"not all of {', '.join(instance_ids)} are InService members of {group.name}")
        return chosen

    def _decrement(self, group: Group, units: int) -> None:
        if group.desired - units < group.min_size:
            raise Conflict(f"{group.name} would go below its minimum of {group.min_size}")
        self.groups[group.name] = replace(group, desired=group.desired - units)

    def _keep(self, name: str, members: Iterable[Member]) -> None:
        self.groups[name] = replace(self.groups[name], members=tuple(members))


def _chunks(values: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(values[start : start + size]) for start in range(0, len(values), size)]
