from __future__ import annotations

from dataclasses import replace

import pytest

from firstbell.capacity.max_pods import eni_max_pods, max_pods
from firstbell.capacity.pools import Networking
from tests.unit.capacity.described import described, facts

PREFIXES = Networking(prefix_delegation=True)
CUSTOM = Networking(custom_networking=True)


@pytest.mark.parametrize(
    ("name", "networking", "by_addresses", "allowed"),
    [
        ("c5.18xlarge", Networking(), 737, 250),
        ("m5.large", Networking(), 29, 29),
        ("m5.large", PREFIXES, 434, 110),
        ("m4.large", PREFIXES, 20, 20),
        ("m5.large", Networking(ipv6=True), 434, 110),
        ("a1.metal", PREFIXES, 3714, 110),
    ],
)
def test_the_address_rule_is_capped_as_eks_caps_it(
    name: str, networking: Networking, by_addresses: int, allowed: int
) -> None:
    """Case 44: 110 pods up to 30 vCPU and 250 above; prefixes need Nitro or bare metal."""
    assert eni_max_pods(facts(name), networking) == by_addresses
    assert max_pods(facts(name), networking) == allowed


@pytest.mark.parametrize(
    ("name", "networking", "allowed"),
    [
        ("t3.2xlarge", CUSTOM, 44),
        ("m5.large", CUSTOM, 20),
        ("m6g.xlarge", Networking(reserved_enis=2), 30),
        ("m5.large", Networking(custom_networking=True, prefix_delegation=True), 110),
    ],
)
def test_interfaces_that_give_pods_no_address_do_not_count(name: str, networking: Networking, allowed: int) -> None:
    """Case 45."""
    assert max_pods(facts(name), networking) == allowed


def test_a_self_managed_node_takes_the_bare_rule_unless_prefixes_make_it_absurd() -> None:
    assert max_pods(facts("c5.18xlarge"), Networking(), managed=False) == 737
    assert max_pods(facts("c5.18xlarge"), PREFIXES, managed=False) == 250


def test_the_operators_own_figure_wins() -> None:
    assert max_pods(facts("m5.large"), Networking(max_pods=58, prefix_delegation=True)) == 58


def test_a_node_without_an_interface_for_pods_takes_none() -> None:
    assert max_pods(facts("m5.large"), Networking(reserved_enis=3)) == 0
    assert max_pods(facts("m5.large"), Networking(reserved_enis=9)) == 0


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("a1.medium", 8), ("c5.4xlarge", 234), ("c6a.2xlarge", 58), ("g4dn.xlarge", 29), ("i3.large", 29),
        ("m5.24xlarge", 737), ("r4.16xlarge", 737), ("t3.medium", 17), ("t3.nano", 4),
        ("t4g.small", 11),
    ],
)  # fmt: skip
def test_the_rule_gives_what_aws_publishes(name: str, published: int) -> None:
    """Case 47. Figures: aws/amazon-vpc-cni-k8s misc/eni-max-pods.txt."""
    assert eni_max_pods(facts(name), Networking()) == published


def test_only_the_default_network_card_counts() -> None:
    """p4d.24xlarge has four cards of 15 interfaces; awslabs/amazon-eks-ami instance-info.jsonl has 15."""
    assert facts("p4d.24xlarge").enis == 15


@pytest.mark.parametrize(
    "networking", [Networking(), PREFIXES, CUSTOM, Networking(reserved_enis=1), Networking(ipv6=True)]
)
def test_no_type_gets_more_than_addresses_and_caps_allow(networking: Networking) -> None:
    for one in described().values():
        assert 0 <= max_pods(one, networking) <= min(eni_max_pods(one, networking), 250)
        assert max_pods(one, replace(networking, reserved_enis=one.enis)) == 0
