"""How many of the nodes that could go, or come back, pods to come have need of. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from firstbell.capacity.demand import UNRESERVED
from firstbell.capacity.placement import Demand, PodShape, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from firstbell.capacity.cluster_view import Pod
    from firstbell.capacity.placement import FreeNode
    from firstbell.capacity.scheduling import Taint


def waiting_demand(pods: Iterable[Pod]) -> tuple[Demand, ...]:
    """Pods that wait for a node, whoever announced them."""
    shapes = Counter(PodShape(pod.requests, pod.tolerations, pod.zones) for pod in pods)
    return tuple(Demand(UNRESERVED, shape, count) for shape, count in shapes.items())


def fewest_needed(
    demand: Sequence[Demand],
    nodes: Sequence[FreeNode],
    spare: Sequence[FreeNode],
    *,
    zones: Sequence[str] = (),
    taints: Sequence[Taint] = (),
) -> int:
    """The fewest of the first `spare` nodes that, beside `nodes`, place as much of `demand` as all of them would."""

    def left_over(count: int) -> int:
        placement = place(demand, (*nodes, *spare[:count]), (), zones=zones, taints=taints)
        return sum(entry.pods for entry in placement.unplaceable.values())

    if not demand or not spare:
        return 0
    least = left_over(len(spare))
    low, high = 0, len(spare)
    while low < high:  # one node more never places fewer
        middle = (low + high) // 2
        if left_over(middle) == least:
            high = middle
        else:
            low = middle + 1
    return low
