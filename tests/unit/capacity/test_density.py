from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstbell.capacity.density import CannotPlace, NodeShape, density, places, smallest_per_unit, units_for
from firstbell.capacity.pools import Networking
from firstbell.capacity.resources import Resources
from tests.unit.capacity.described import GIB, described, facts, node, pod

DAEMONSETS = Resources(cpu_millicores=200, memory_bytes=GIB // 4, pods=5)


@pytest.mark.parametrize(
    ("name", "overhead", "request_", "pods", "limited_by"),
    [
        ("m5.large", None, pod(500, 2), 3, "cpu"),
        ("m5.large", None, pod(100, 2), 3, "memory"),
        ("m5.large", None, pod(10, 0.01), 29, "pods"),
        ("m5.large", DAEMONSETS, pod(10, 0.01), 24, "pods"),
        ("m5.large", None, pod(0, 0), 29, "pods"),
        ("g5.12xlarge", None, pod(1000, 1, gpus=1), 4, "gpu"),
        ("m5.large", None, pod(10, 0, volumes=2), 12, "volumes"),
    ],
)
def test_density_is_what_the_scarcest_resource_allows(
    name: str, overhead: Resources | None, request_: Resources, pods: int, limited_by: str
) -> None:
    found = density(node(name, overhead), request_)
    assert (found.pods, found.limited_by, found.estimated) == (pods, limited_by, True)


def test_ephemeral_storage_limits_too() -> None:
    asked = Resources(ephemeral_storage_bytes=5 * GIB, pods=1)
    assert (density(node("m5.large"), asked).pods, density(node("m5.large"), asked).limited_by) == (
        3,
        "ephemeral-storage",
    )


def test_a_request_of_half_a_node_and_more_fits_once_and_of_more_than_a_node_is_refused() -> None:
    """Case 48: 51 % -> 1, 101 % -> refused with the reason."""
    offered = node("m5.large").free.memory_bytes
    half, whole = (
        Resources(memory_bytes=offered * 51 // 100, pods=1),
        Resources(memory_bytes=offered * 101 // 100, pods=1),
    )
    assert density(node("m5.large"), half).pods == 1
    with pytest.raises(CannotPlace, match=r"asks for 6\.\d+Gi memory and m5\.large offers 6\.\d+Gi memory") as refusal:
        density(node("m5.large"), whole)
    assert refusal.value.limited_by == "memory"


@pytest.mark.parametrize(
    ("shape", "request_", "reason"),
    [
        (node("m5.large"), pod(100, 1, gpus=1), "the pod asks for 1 GPU and m5.large has none"),
        (node("m5.large"), pod(2000), "the pod asks for 2000m cpu and m5.large offers 1930m cpu"),
        (
            node("m5.large", DAEMONSETS),
            pod(1900),
            "the pod asks for 1900m cpu and m5.large offers 1730m cpu beside what runs on every node",
        ),
        (
            node("m5.large", networking=Networking(reserved_enis=3)),
            pod(1),
            "the pod asks for 1 pods and m5.large offers 0 pods",
        ),
    ],
)
def test_a_pod_that_fits_nowhere_is_refused_in_words(shape: NodeShape, request_: Resources, reason: str) -> None:
    with pytest.raises(CannotPlace) as refusal:
        density(shape, request_)
    assert refusal.value.reason == str(refusal.value) == reason


def test_an_overcommitted_node_has_no_room_rather_than_less_than_none() -> None:
    assert places(Resources(cpu_millicores=-5, memory_bytes=-1, pods=3), pod(1)) == 0
    assert places(Resources(cpu_millicores=-5, memory_bytes=-1, pods=3), pod()) == 3


def test_a_request_that_does_not_count_itself_is_an_error() -> None:
    with pytest.raises(ValueError, match="pods=1"):
        places(node("m5.large").free, Resources(cpu_millicores=1))


def test_a_mixed_pool_is_reckoned_by_its_smallest_density_per_unit() -> None:
    """Case 40: units are not instances."""
    small, large = node("m5.large", weight=1), node("m5.xlarge", weight=2)
    assert density(small, pod(500, 2)).pods == 3
    assert density(large, pod(500, 2)).pods == 7
    assert smallest_per_unit([large, small], pod(500, 2)) is small
    assert units_for(12, [large, small], pod(500, 2)) == 4
    assert units_for(13, [large, small], pod(500, 2)) == 5


def test_units_of_a_heavy_type_are_not_rounded_up_to_whole_instances() -> None:
    """Eight units may come as eight small nodes, so a single pod asks for one unit and not for eight."""
    shapes = [node("m5.large", weight=1), node("m5.4xlarge", weight=9)]
    assert units_for(1, shapes, pod(500, 2)) == 1


def test_without_weights_a_unit_is_an_instance() -> None:
    """Case 40; case 49: seven users a node, 210 -> 30 nodes, 211 -> 31."""
    seven = NodeShape("m5.large", Resources(memory_bytes=15 * GIB, pods=29))
    assert units_for(210, [seven], pod(0, 2)) == 30
    assert units_for(211, [seven], pod(0, 2)) == 31
    assert units_for(0, [seven], pod(0, 2)) == 0


def test_a_pod_that_fits_on_only_some_types_of_a_pool_is_refused() -> None:
    with pytest.raises(CannotPlace, match=r"m5\.large"):
        units_for(1, [node("m5.large"), node("m5.4xlarge")], pod(8000))


requests = st.builds(
    Resources,
    cpu_millicores=st.integers(0, 4000),
    memory_bytes=st.integers(0, 16 * GIB),
    ephemeral_storage_bytes=st.integers(0, GIB),
    pods=st.just(1),
    gpus=st.integers(0, 1),
    volumes=st.integers(0, 3),
)
types = st.sampled_from(sorted(name for name in described() if not name.startswith("mac")))


@given(types, requests, requests)
def test_more_asked_for_never_fits_more_often(name: str, request_: Resources, more: Resources) -> None:
    larger = replace(request_ + more, pods=1)
    assert places(node(name).free, larger) <= places(node(name).free, request_)


@given(types, requests, st.builds(Resources, pods=st.integers(0, 40), cpu_millicores=st.integers(0, 2000)))
def test_what_is_promised_fits_and_one_more_would_not(name: str, request_: Resources, overhead: Resources) -> None:
    shape = node(name, overhead)
    fitting = places(shape.free, request_)
    assert 0 <= fitting <= shape.allocatable.pods
    assert not fitting or shape.free.covers(request_.times(fitting))
    assert not shape.free.covers(request_.times(fitting + 1))


@given(requests, st.lists(st.tuples(types, st.integers(1, 8)), min_size=1, max_size=4), st.integers(0, 500), st.data())
def test_units_suffice_whatever_types_auto_scaling_launches(
    request_: Resources, typed: list[tuple[str, int]], pods: int, data: st.DataObject
) -> None:
    """Case 40."""
    shapes = [node(name, weight=weight) for name, weight in typed]
    try:
        units = units_for(pods, shapes, request_)
    except CannotPlace:
        return
    launched = places_there = 0
    while launched < units:
        shape = data.draw(st.sampled_from(shapes))
        launched += shape.weight
        places_there += density(shape, request_).pods
    assert places_there >= pods


def test_every_described_type_has_a_density_or_a_reason() -> None:
    """Case 47: never 0, None or a division by zero, for any of the 1,395 types."""
    refused = {}
    for name in described():
        try:
            found = density(node(name), pod(500, 2))
        except CannotPlace as refusal:
            refused[name] = refusal.reason
        else:
            assert 1 <= found.pods <= node(name).allocatable.pods
    assert 0 < len(refused) < 100
    assert all(name in reason for name, reason in refused.items())


def test_a_type_that_nobody_describes_is_unknown() -> None:
    """Case 47: exact match, no guess by family."""
    assert "c6a.2xlarge" in described()
    assert "t4g.small" in described()
    assert "m9x.large" not in described()
    with pytest.raises(KeyError):
        facts("m9x.large")
