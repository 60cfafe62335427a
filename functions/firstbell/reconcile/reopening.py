"""Gives nodes back that idle has cordoned, to pods that would else wait for new ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from firstbell.capacity.spare import fewest_needed
from firstbell.cluster.cordons import mark_of
from firstbell.errors import Conflict, FirstbellError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from firstbell.capacity.cluster_view import Node
    from firstbell.capacity.groups import Group
    from firstbell.capacity.placement import Demand
    from firstbell.capacity.pool_state import PoolState
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.sight import PoolSight
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.reconcile.reading import ClusterReading
    from firstbell.telemetry import Telemetry

TRIES = 3


def take_back_mark(cluster: KubernetesCluster, node_name: str) -> Node | None:
    """Un-cordons the node as far as idle cordoned it; the node as it is then, None where it is gone.

    Raises Conflict where others keep changing the node, and what the API server raises.
    """
    for attempt in range(TRIES):
        try:
            return cluster.uncordon(cluster.node(node_name), "idle")
        except NotFound:
            return None
        except Conflict:
            if attempt == TRIES - 1:
                raise
    return None


def reopen(
    connect: Callable[[], KubernetesCluster],
    reading: ClusterReading,
    pool: Pool,
    group: Group,
    seen: PoolSight,
    state: PoolState,
    demand: Sequence[Demand],
    telemetry: Telemetry,
    now: float,
) -> tuple[PoolSight, PoolState]:
    """Un-cordons as many idle-marked nodes as `demand` needs beside the usable ones, and the pool as it is seen then.

    The lease is held, so idle is between two looks. A node that it has already set out to remove is left alone: its
    instance may be ending. Whatever goes wrong here costs a new node, not the sizing.
    """
    marked = {node.name: node for node in seen.nodes if mark_of(node, "idle") is not None}
    at_hand = [n.name for n in marked.values() if not state.idle.is_leaving(n.instance_id, now)]
    if not demand or not at_hand:
        return seen, state
    beneath = reading.of_pool(pool, group, expected_overhead=seen.overhead, now=now, idle_marks_lifted=True)
    spare = [free for free in beneath.sight.usable if free.name in at_hand]
    count = fewest_needed(demand, seen.sight.usable, spare, zones=group.zones, taints=pool.taints)
    reopened = set()
    for free in spare[:count]:
        try:
            node = take_back_mark(connect(), free.name)
        except FirstbellError as error:
            telemetry.log.warning("idle node could not be given back", node=free.name, error=str(error))
            continue
        if node is not None:
            reading.replace_node(node)
            reopened.add(node.instance_id)
            telemetry.emit("NodesReopened", pool=pool.name)
    if not reopened:
        return seen, state
    idle = replace(state.idle, marked=tuple(i for i in state.idle.marked if i not in reopened))
    again = reading.of_pool(pool, group, expected_overhead=seen.overhead, now=now)
    return again, replace(state, idle=idle)
