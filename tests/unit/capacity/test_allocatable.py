from __future__ import annotations

import pytest

from firstbell.capacity.allocatable import estimated_allocatable, kept_memory_mib, reserved_cpu_millicores
from firstbell.capacity.density import CannotPlace
from firstbell.capacity.pools import Networking
from firstbell.capacity.resources import RESOURCE_NAMES
from tests.unit.capacity.described import described, facts

MIB = 2**20


@pytest.mark.parametrize(("vcpus", "reserved"), [(1, 60), (2, 70), (4, 80), (8, 90), (16, 110), (64, 230), (96, 310)])
def test_kubelet_keeps_less_of_each_further_core(vcpus: int, reserved: int) -> None:
    """Figures of awslabs/amazon-eks-ami, nodeadm's kube-reserved."""
    assert reserved_cpu_millicores(vcpus) == reserved


def test_memory_is_what_kernel_kubelet_and_the_eviction_threshold_leave() -> None:
    kept_mib = 574  # 7 % of 8192, rounded up
    assert kept_memory_mib(facts("m5.large")) == kept_mib
    assert estimated_allocatable(facts("m5.large"), Networking()).memory_bytes == (
        (8192 - kept_mib - (255 + 11 * 29) - 100) * MIB
    )


@pytest.mark.parametrize(
    "networking",
    [
        Networking(prefix_delegation=True),
        Networking(custom_networking=True),
        Networking(reserved_enis=1),
        Networking(max_pods=110),
    ],
)
def test_reserved_memory_follows_the_plain_rule_whatever_the_pods(networking: Networking) -> None:
    """As on the recorded nodes with prefixes and with maxPods of their operators."""
    plain = estimated_allocatable(facts("m5.large"), Networking())
    assert estimated_allocatable(facts("m5.large"), networking).memory_bytes == plain.memory_bytes


def test_graviton_sets_memory_aside_before_anybody_sees_it() -> None:
    assert facts("m6g.large").memory_mib == facts("m5.large").memory_mib
    assert kept_memory_mib(facts("m6g.large")) > kept_memory_mib(facts("m5.large"))


@pytest.mark.parametrize(
    ("name", "volumes"),
    [
        pytest.param("m5.large", 24, id="27 shared with 2 further interfaces, less the root volume"),
        pytest.param("m5d.large", 23, id="EC2 has taken its instance store off already"),
        pytest.param("m7i.large", 31, id="32 of its own"),
        pytest.param("m4.large", 38, id="Xen: interfaces take none of it, and the driver counts with 39"),
    ],
)
def test_volumes_are_what_root_and_interfaces_leave(name: str, volumes: int) -> None:
    assert estimated_allocatable(facts(name), Networking()).volumes == volumes


def test_ephemeral_storage_follows_the_root_volume() -> None:
    """18242267924 bytes of a 20 GiB volume is what EKS nodes report: kubernetes/autoscaler, docs of scale from zero."""
    small = estimated_allocatable(facts("m5.large"), Networking()).ephemeral_storage_bytes
    assert 0.99 * 18242267924 < small < 18242267924
    assert (
        estimated_allocatable(facts("m5.large"), Networking(), root_volume_gib=80).ephemeral_storage_bytes > 4 * small
    )
    assert estimated_allocatable(facts("m5.large"), Networking(), root_volume_gib=0).ephemeral_storage_bytes == 0


def test_gpus_are_nvidias() -> None:
    assert facts("g5.48xlarge").gpus == 8
    assert facts("g6f.large").gpus == 1
    assert facts("inf1.xlarge").gpus == 0


def test_a_type_that_cannot_be_a_node_is_refused_in_words() -> None:
    with pytest.raises(CannotPlace, match=r"mac2\.metal runs no Linux node"):
        estimated_allocatable(facts("mac2.metal"), Networking())
    with pytest.raises(CannotPlace, match=r"m4\.large is not of the Nitro System"):
        estimated_allocatable(facts("m4.large"), Networking(ipv6=True))


def test_every_described_type_is_a_node_or_refused() -> None:
    assert len(described()) == 1395
    refused = []
    for name, one in described().items():
        try:
            offered = estimated_allocatable(one, Networking())
        except CannotPlace:
            refused.append(name)
            continue
        assert all(getattr(offered, amount) >= 0 for amount in RESOURCE_NAMES)
        assert 0 < offered.cpu_millicores < one.vcpus * 1000
        assert offered.memory_bytes < one.memory_mib * MIB
    assert all(name.startswith("mac") for name in refused)
