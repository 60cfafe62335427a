"""Which zone, which type, which victim: the decisions of a group, pure.

Zones: https://docs.aws.amazon.com/autoscaling/ec2/userguide/auto-scaling-benefits.html
Weights: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-mixed-instances-groups-instance-weighting.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil

from localcloud.fleet.state import Group, Member, Offer


def zone_counts(group: Group) -> list[tuple[str, int]]:
    """Members that stay, by zone, in the group's order of zones."""
    counted = Counter(member.zone for member in group.staying)
    return [(zone, counted[zone]) for zone in group.zones]


def emptiest_zone(group: Group) -> str:
    """The zone with the fewest members; the first in the group's order among equals."""
    return min(zone_counts(group), key=lambda counted: counted[1])[0]


def fullest_zone(group: Group) -> str:
    return max(zone_counts(group), key=lambda counted: counted[1])[0]


def unbalanced(group: Group) -> bool:
    """Whether two zones differ by more than one member."""
    counts = [count for _, count in zone_counts(group)]
    return len(counts) > 1 and max(counts) - min(counts) > 1


def wants_spot(group: Group) -> bool:
    """Whether the next unit is a Spot one: the on-demand base first, then the percentage above it.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html
    """
    if not group.settings.get("MixedInstancesPolicy"):
        return group.offers[0].template.spot
    base = int(group.distribution.get("OnDemandBaseCapacity", 0))
    percentage = int(group.distribution.get("OnDemandPercentageAboveBaseCapacity", 100))
    on_demand = base + ceil(max(0, group.desired - base) * percentage / 100)
    return sum(member.weight for member in group.staying if not member.machine.spot) >= on_demand


def next_offer(group: Group, *, spot: bool) -> Offer:
    """On-demand takes the first type in the group's order; Spot spreads over the types, as its strategies diversify."""
    if not spot:
        return group.offers[0]
    counted = Counter(member.machine.instance_type for member in group.staying)
    return min(group.offers, key=lambda offer: counted[offer.instance_type])


def scale_in_victim(
    group: Group, busy_pods: Mapping[str, int], *, among: Iterable[Member] | None = None
) -> Member | None:
    """The busiest unprotected member that may go without the group falling below desired.

    AWS chooses by termination policy and never looks at pods; this is the choice that a caller who did not check
    fears most, and AWS may make it too.
    """
    surplus = group.units - group.desired
    candidates = [
        member
        for member in (group.staying if among is None else among)
        if not member.protected and not member.leaving and member.weight <= surplus
    ]
    return max(candidates, key=lambda member: busy_pods.get(member.machine.node_name, 0), default=None)
