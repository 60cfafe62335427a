"""The stand-in scales as cluster-autoscaler does: late, by estimate, and never above the maximum."""

from __future__ import annotations

import pytest

from demo.reactive import Scan, amounts, free_places, places, requests, wanted

POD = {"cpu": 0.5, "memory": 2 * 2**30, "pods": 1.0}
DAEMONS = {"cpu": 0.15, "memory": 0.0, "pods": 2.0}


@pytest.mark.parametrize(
    ("scan", "desired"),
    [
        (Scan(waiting_pods=160, pods_per_node=15, room=0, desired=0, most=20), 11),
        (Scan(waiting_pods=160, pods_per_node=15, room=165, desired=11, most=20), 11),
        (Scan(waiting_pods=6, pods_per_node=14, room=0, desired=11, most=20), 12),
        (Scan(waiting_pods=160, pods_per_node=15, room=0, desired=0, most=5), 5),
        (Scan(waiting_pods=0, pods_per_node=15, room=0, desired=3, most=20), 3),
        (Scan(waiting_pods=4, pods_per_node=0, room=0, desired=3, most=20), 3),
        (Scan(waiting_pods=40, pods_per_node=10, room=0, desired=9, most=5), 9),
    ],
    ids=[
        "from zero",
        "waits for those on their way",
        "one more",
        "capped",
        "idle",
        "fits on no node",
        "above its maximum",
    ],
)
def test_it_asks_for_what_the_waiting_pods_need_by_its_estimate(scan: Scan, desired: int) -> None:
    assert wanted(scan) == desired


def test_a_type_as_ec2_describes_it_seems_to_hold_more_than_a_real_node() -> None:
    described = {"cpu": 8.0, "memory": 32 * 2**30, "pods": 58.0}
    registered = amounts({"cpu": "7910m", "memory": "31391304Ki", "pods": "58"})

    assert places(described, DAEMONS, POD) == 15
    assert places(registered, DAEMONS, POD) == 14


def test_requests_of_all_containers_count_and_missing_ones_are_nothing() -> None:
    spec = {"containers": [{"resources": {"requests": {"cpu": "100m"}}}, {"resources": {}}, {}]}

    assert requests(spec) == {"cpu": 0.1, "memory": 0.0, "pods": 1.0}


def test_places_on_a_node_are_what_its_own_pods_leave() -> None:
    node = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}}}
    taken = {"nodeName": "n1", "containers": [{"resources": {"requests": {"cpu": "500m", "memory": "2Gi"}}}]}

    assert free_places(node, [{"spec": taken}, {"spec": {**taken, "nodeName": "n2"}}], POD) == 3
