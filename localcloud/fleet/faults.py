"""Faults asked for through the control door: failed launches, nodes that never join, throttling; and boot times."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from localcloud.fleet.errors import Refused


@dataclass
class LaunchFault:
    """Launches of a group fail with EC2's error `kind`: `remaining` times, or until cleared (None).

    Empty `zones` or `instance_types` mean all.
    """

    kind: str
    remaining: int | None = None
    zones: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()

    def hits(self, zone: str, instance_type: str) -> bool:
        return (
            self.remaining != 0
            and (not self.zones or zone in self.zones)
            and (not self.instance_types or instance_type in self.instance_types)
        )


@dataclass
class Faults:
    """What is to go wrong. Names of groups and actions are keys; an entry that is used up does nothing."""

    launches: dict[str, list[LaunchFault]] = field(default_factory=dict)
    unjoining: Counter[str] = field(default_factory=Counter)
    throttled: Counter[str] = field(default_factory=Counter)
    boot_seconds: dict[str, float] = field(default_factory=dict)

    def launch_fault(self, group: str, zone: str, instance_type: str) -> LaunchFault | None:
        return next((fault for fault in self.launches.get(group, ()) if fault.hits(zone, instance_type)), None)

    def take(self, fault: LaunchFault) -> None:
        if fault.remaining is not None:
            fault.remaining -= 1

    def next_joins(self, group: str) -> bool:
        if self.unjoining[group] > 0:
            self.unjoining[group] -= 1
            return False
        return True

    def throttle(self, service: str, action: str) -> None:
        """Raise AWS's throttling error while calls of this action are to be throttled.

        https://docs.aws.amazon.com/autoscaling/ec2/APIReference/CommonErrors.html
        https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
        """
        if self.throttled[action] <= 0:
            return
        self.throttled[action] -= 1
        if service == "ec2":
            raise Refused("RequestLimitExceeded", "Request limit exceeded.", 503)
        raise Refused("Throttling", "Rate exceeded")
