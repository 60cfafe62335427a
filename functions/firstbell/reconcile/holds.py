"""Holds: while a reservation is live, cluster-autoscaler must not take its nodes for unneeded before the pods come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstbell.capacity.cluster_view import Node
    from firstbell.capacity.pool_state import PoolState
    from firstbell.capacity.sight import PoolSight
    from firstbell.cluster.kubernetes import KubernetesCluster

SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
"""https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md: how to keep it from a node."""
HELD_BY_US = "firstbell.dev/hold"
"""Our mark beside it: only holds that carry it are ours to remove."""


@dataclass(frozen=True, slots=True)
class Held:
    state: PoolState
    again: bool = False
    """Whether the state has to be remembered before the nodes are touched: look again."""


def hold(connect: Callable[[], KubernetesCluster], seen: PoolSight, state: PoolState, *, wanted: bool) -> Held:
    """Sets holds on the pool's usable nodes while they are `wanted`, and removes those that we set once they are not.

    That there may be holds is remembered before the first is set, so that none outlives its reservation unnoticed.
    """
    if not seen.sight.known:
        return Held(state)
    if wanted:
        unheld = [node for node in seen.usable_nodes if node.annotations.get(SCALE_DOWN_DISABLED) != "true"]
        if unheld and not state.holds:
            return Held(replace(state, holds=True), again=True)
        _annotate(connect, unheld, "true")
        return Held(state)
    if state.holds:
        _annotate(connect, [node for node in seen.nodes if HELD_BY_US in node.annotations], None)
    return Held(replace(state, holds=False))


def _annotate(connect: Callable[[], KubernetesCluster], nodes: list[Node], value: str | None) -> None:
    for node in nodes:
        connect().annotate_node(node.name, {SCALE_DOWN_DISABLED: value, HELD_BY_US: value})
