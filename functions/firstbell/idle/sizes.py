"""A group's MinSize, through whoever owns it: EKS would undo a change of a managed node group's group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firstbell.capacity.groups import Group
    from firstbell.capacity.pools import Pool
    from firstbell.cloud.autoscaling import AutoScaling
    from firstbell.cloud.eks import Eks


@dataclass(frozen=True, slots=True)
class MinSizes:
    autoscaling: AutoScaling
    eks: Eks
    cluster: str

    def current(self, pool: Pool, group: Group) -> int:
        if pool.nodegroup is None:
            return group.min_size
        return self.eks.nodegroup(self.cluster, pool.nodegroup).min_size

    def change(self, pool: Pool, group: Group, min_size: int) -> None:
        """Raises Conflict above MaxSize, RetryLater while EKS changes the node group. Auto Scaling raises desired to a
        MinSize above it; EKS is told."""
        if pool.nodegroup is None:
            self.autoscaling.update_min_size(group.name, min_size)
        else:
            desired = min_size if min_size > group.desired else None
            self.eks.update_nodegroup_min_size(self.cluster, pool.nodegroup, min_size, desired)
