"""CPU time of one whole sizing: 10,000 pods of ten classes over 1,000 nodes, in a group of three zones.

    python -m bench.planning

Ends with 1 if it takes longer than the design allows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

from bench.placement import ALLOWED_MILLISECONDS, GIB, NODES, PODS, ROUNDS, cpu_milliseconds, demand, half_full_nodes
from firstbell.capacity.demand import PoolDemand
from firstbell.capacity.density import NodeShape
from firstbell.capacity.groups import Group, Member
from firstbell.capacity.joining import Sight
from firstbell.capacity.pool_state import PoolState
from firstbell.capacity.pools import Pool
from firstbell.capacity.reservations import Reservation
from firstbell.capacity.resources import Resources
from firstbell.capacity.sizing import SizePlan, plan_size

NOW = 1_796_112_000.0
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
SHAPES = (
    NodeShape("m5.2xlarge", Resources(7910, 29 * GIB, pods=58), Resources(200, GIB // 4, pods=5)),
    NodeShape("m5.4xlarge", Resources(15890, 59 * GIB, pods=234), Resources(200, GIB // 4, pods=5), weight=2),
)


def planning(shapes: Sequence[NodeShape]) -> Callable[[], SizePlan]:
    classes, nodes = demand(), half_full_nodes()
    live = [
        Reservation(item.key, "notebook", item.pods, item.shape.requests, NOW, NOW + 3600, NOW, NOW, "teachers")
        for item in classes
    ]
    members = tuple(Member(node.name, "InService", "m5.2xlarge", ZONES[n % 3]) for n, node in enumerate(nodes))
    return partial(
        plan_size,
        Pool(name="notebook", pod=Resources(pods=1), group="asg-notebook"),
        Group("asg-notebook", NODES, 0, 10 * NODES, members, zones=ZONES),
        PoolState(),
        Sight(usable=tuple(nodes), joined=frozenset(node.name for node in nodes)),
        PoolDemand(items=tuple(classes)),
        live,
        shapes,
        failing=False,
        now=NOW,
    )


def main() -> int:
    slowest = 0.0
    for types in (1, 2):
        plan = planning(SHAPES[:types])
        taken = cpu_milliseconds(plan, ROUNDS)
        planned = plan()
        slowest = max(slowest, taken)
        print(
            f"sizing for {PODS} pods over {NODES} nodes, {types} instance type(s): "
            f"{taken:.0f} ms of CPU (allowed {ALLOWED_MILLISECONDS})"
        )
        placed = sum(coverage.placed for coverage in planned.coverage.values())
        print(f"{placed} pods have room now; desired from {planned.read} to {planned.desired} units for the rest")
    return 0 if slowest <= ALLOWED_MILLISECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
