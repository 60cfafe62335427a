"""Groups that no density holds for: their signals are refused in words, never guessed at (case 47)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstbell.capacity.pools import Networking
from firstbell.capacity.resources import Resources
from tests.fakes.school import PLACES, XLARGE, School, pool


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ({"instance_types": ("m9x.large",)}, "EC2 knows no instance type m9x.large in this region"),
        ({"instance_types": ("m5.xlarge", "m9x.large")}, "EC2 knows no instance type m9x.large in this region"),
        ({"instance_types": ("mac1.metal",)}, "mac1.metal runs no Linux node"),
        ({"instance_types": ()}, "group asg-notebook names no instance type and has no instance to go by"),
    ],
)
def test_a_group_with_a_type_that_cannot_be_reckoned_with_refuses_signals(group: dict[str, Any], words: str) -> None:
    school = School()
    school.instance_types.facts["mac1.metal"] = replace(XLARGE, name="mac1.metal", architecture="")
    school.change_group(**group)
    school.deliver(school.signal(PLACES))
    (rejected,) = school.said("Signal Rejected")
    assert rejected["problems"] == [
        {"field": "pool", "problem": f"{words}; allowed: a pool whose instance types can be reckoned with"}
    ]
    assert school.desired() == 0


def test_an_ipv6_pool_refuses_types_that_are_not_of_the_nitro_system() -> None:
    school = School(pools=(pool(networking=Networking(ipv6=True)),))
    school.instance_types.facts["m5.xlarge"] = replace(XLARGE, nitro=False)
    school.deliver(school.signal(PLACES))
    (rejected,) = school.said("Signal Rejected")
    assert "IPv6" in rejected["problems"][0]["problem"]


def test_a_gpu_pod_is_refused_by_a_pool_without_gpus() -> None:
    school = School()
    school.deliver(school.signal(1, pod={"gpu": 1}))
    (rejected,) = school.said("Signal Rejected")
    assert rejected["problems"][0]["problem"].startswith("the pod asks for 1 GPU and m5.xlarge has none")


def test_a_type_of_which_a_node_was_seen_needs_no_word_of_ec2() -> None:
    school = School()
    school.change_group(desired=1)
    school.grow()
    school.minutes(5)
    school.instance_types.facts.clear()
    school.deliver(school.signal(2 * PLACES))
    assert school.desired() == 2
    assert not school.said("Signal Rejected")


def test_a_fallback_pool_that_cannot_be_reckoned_with_accepts_nothing_and_the_next_is_asked() -> None:
    school = School(pools=(pool(fallback=("odd", "spare")), pool("odd"), pool("spare")))
    school.change_group(suspended=frozenset({"Launch"}))
    school.change_group("odd", instance_types=("m9x.large",))
    school.deliver(school.signal(PLACES))
    school.tick()
    assert [school.desired(name) for name in ("notebook", "odd", "spare")] == [0, 0, 1]


def test_a_pod_takes_what_the_signal_says_and_the_rest_from_the_pool() -> None:
    school = School(pools=(pool(),))
    school.deliver(school.signal(3, pod={"memory": "4Gi"}))
    (stored,) = school.ledger.read().reservations
    assert stored.pod == Resources(cpu_millicores=100, memory_bytes=4 * 2**30, pods=1)
