"""A plain model of kube-scheduler's choice of node, to hold placement to: one pod after the other, spreading.

NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation with their default weights:
https://kubernetes.io/docs/reference/scheduling/config/
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from firstbell.capacity.resources import Resources


def left_over(nodes: Iterable[Resources], pods: Sequence[Resources], allocatable: Resources) -> int:
    """Pods for which no node has room, when they arrive in this order. `allocatable` is what scores are relative to."""
    free = list(nodes)
    left = 0
    for pod in pods:
        fitting = [n for n, room in enumerate(free) if room.covers(pod)]
        if not fitting:
            left += 1
            continue
        chosen = max(fitting, key=lambda n: _score(free[n] - pod, allocatable))
        free[chosen] -= pod
    return left


def _score(room: Resources, allocatable: Resources) -> float:
    cpu = room.cpu_millicores / allocatable.cpu_millicores
    memory = room.memory_bytes / allocatable.memory_bytes
    return (cpu + memory) / 2 + 1 - abs(cpu - memory) / 2
