"""The recordings of real nodes, and how they are read."""

from __future__ import annotations

import re

import pytest

from localcloud.fleet.sizes import UnknownType, node_size, parse_lines, recorded_types, recordings


def test_at_least_twelve_real_nodes_of_many_kinds_are_recorded() -> None:
    assert len(recordings()) >= 16
    types = recorded_types()
    families = {re.split(r"[\d.]", one)[0] + one.split(".")[0].lstrip("abcdefghijklmnopqrstuvwxyz")[0] for one in types}
    assert {"m5", "r5", "t3", "c5", "g4"} <= families
    assert {"m5.large", "m5.xlarge", "m5.2xlarge"} <= set(types)
    assert any(recording.architecture == "arm64" for recording in recordings())
    assert any((recording.overridden_max_pods or 0) >= 110 for recording in recordings())
    assert any("nvidia.com/gpu" in recording.allocatable for recording in recordings())


@pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.name)
def test_a_recording_names_its_address_and_is_whole(recording: object) -> None:
    from localcloud.fleet.sizes import Recording

    assert isinstance(recording, Recording)
    assert recording.address.startswith("https://")
    assert {"cpu", "memory"} <= set(recording.allocatable)
    assert recording.max_pods is not None or "pods" in recording.allocatable


def test_describe_output_is_read_with_its_comments_and_without_its_neighbours() -> None:
    lines = (
        "Capacity:\n attachable-volumes-aws-ebs:  25\n cpu:  4\n pods:  110 # <- not 58\nAllocatable:\n cpu: 3920m\n"
    )
    capacity, allocatable = parse_lines(lines, "describe")
    assert capacity == {"attachable-volumes-aws-ebs": "25", "cpu": "4", "pods": "110"}
    assert allocatable == {"cpu": "3920m"}


def test_json_and_decimal_cores_are_read_as_kubernetes_writes_them() -> None:
    lines = (
        '"capacity": {\n "cpu": 4.0,\n "memory": 33163589976\n},\n"allocatable": {\n "cpu": 3.92,\n "memory": 1\n},\n'
    )
    capacity, allocatable = parse_lines(lines, "status")
    assert capacity == {"cpu": "4", "memory": "33163589976"}
    assert allocatable == {"cpu": "3920m", "memory": "1"}


def test_of_a_range_the_lower_bound_is_taken() -> None:
    lines = "m5.large:\n cpu_allocatable_low: 1.93\n mem_allocatable_low: 6.803Gi\n mem_allocatable_high: 6.885Gi\n"
    assert parse_lines(lines, "range")[1] == {"cpu": "1930m", "memory": "7133462Ki"}


def test_an_operator_s_override_of_max_pods_does_not_become_the_type_s() -> None:
    assert node_size("m5.2xlarge").allocatable["pods"] == "58"
    assert node_size("m5.2xlarge").with_max_pods(110).allocatable["pods"] == "110"


def test_a_type_that_nobody_recorded_is_unknown_and_the_known_ones_are_named() -> None:
    with pytest.raises(UnknownType, match=r"m9x\.large; recorded are .*m5\.xlarge"):
        node_size("m9x.large")
