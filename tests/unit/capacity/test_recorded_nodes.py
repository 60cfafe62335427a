"""What is computed of a node, against what real nodes registered (localcloud/fleet/recordings, with their addresses).

It holds for the EKS AMIs (AL2 and AL2023, whose reservations are alike) with kubelet's default reservation.
"""

from __future__ import annotations

import math

import pytest

from firstbell.capacity.allocatable import estimated_allocatable, reserved_cpu_millicores
from firstbell.capacity.pools import Networking
from firstbell.capacity.requests import allocatable_resources
from firstbell.capacity.resources import Resources
from localcloud.fleet.sizes import Recording, recordings
from tests.unit.capacity.described import GIB, facts

BEFORE_RESERVATIONS = {"c5.2xlarge-1"}
"""Of the time before EKS reserved CPU and memory for kubelet: such a node offers more than any AMI since."""
GPUS_SHARED_IN_TIME = {"g5.2xlarge-1"}
"""Its device plugin offers each GPU several times, which only a live node can tell."""
ON_THE_INSTANCE_STORE = {"g5.2xlarge-1"}
"""Its pods write to the local NVMe disks, not to the root volume that is reckoned with."""

RECORDED = [one for one in recordings() if one.name not in BEFORE_RESERVATIONS]


def computed(recording: Recording) -> Resources:
    """For a self-managed node with the recorded maxPods and root volume."""
    networking = Networking(max_pods=recording.overridden_max_pods)
    storage = registered(recording).ephemeral_storage_bytes
    root_volume_gib = math.ceil((storage + GIB) / 0.9 / GIB)
    return estimated_allocatable(
        facts(recording.instance_type), networking, managed=False, root_volume_gib=root_volume_gib
    )


def registered(recording: Recording) -> Resources:
    return allocatable_resources(recording.allocatable, recording.ebs_attach_limit)


@pytest.mark.parametrize("recording", RECORDED, ids=lambda one: one.name)
def test_no_more_is_computed_than_a_real_node_registers_and_little_less(recording: Recording) -> None:
    ours, real = computed(recording), registered(recording)
    assert ours.cpu_millicores == real.cpu_millicores
    assert 0.95 * real.memory_bytes <= ours.memory_bytes <= real.memory_bytes
    if real.ephemeral_storage_bytes and recording.name not in ON_THE_INSTANCE_STORE:
        assert 0.95 * real.ephemeral_storage_bytes <= ours.ephemeral_storage_bytes <= real.ephemeral_storage_bytes
    if real.pods:
        assert ours.pods == real.pods
    if real.gpus and recording.name not in GPUS_SHARED_IN_TIME:
        assert ours.gpus == real.gpus
    assert ours.volumes <= real.volumes


def test_more_than_twenty_nodes_of_many_families_are_compared() -> None:
    assert len(RECORDED) >= 20
    assert {one.instance_type.split(".")[0] for one in RECORDED} >= {"m5", "r5", "t3", "g4dn", "r7i", "m8g"}


@pytest.mark.parametrize(
    "recording", [one for one in recordings() if one.name in BEFORE_RESERVATIONS], ids=lambda one: one.name
)
def test_a_node_that_is_left_out_reserved_nothing(recording: Recording) -> None:
    vcpus = facts(recording.instance_type).vcpus
    assert registered(recording).cpu_millicores == vcpus * 1000 > vcpus * 1000 - reserved_cpu_millicores(vcpus)
    assert allocatable_resources(recording.capacity).memory_bytes - registered(recording).memory_bytes == 100 * 2**20
