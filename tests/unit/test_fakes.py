"""Fakes stand in for adapters only as long as they answer every call that an adapter answers."""

from __future__ import annotations

import inspect

import pytest

from firstbell.cluster.evictions import EvictionResult
from firstbell.errors import Conflict, RetryLater
from tests.fakes import (
    Crash,
    FakeAutoScaling,
    FakeBus,
    FakeCluster,
    FakeEks,
    FakeInstanceTypes,
    FakeLoadBalancers,
    Faults,
)
from tests.unit.cluster.objects import a_node, a_pod


@pytest.mark.parametrize("fake", [FakeAutoScaling, FakeBus, FakeCluster, FakeEks, FakeInstanceTypes, FakeLoadBalancers])
def test_a_fake_overrides_every_public_method_of_the_adapter(fake: type) -> None:
    adapter = fake.__mro__[-2]
    public = {name for name, _ in inspect.getmembers(adapter, inspect.isfunction) if not name.startswith("_")}
    assert public
    assert public <= vars(fake).keys()


def test_a_fault_before_the_effect_leaves_the_cluster_as_it_was() -> None:
    faults = Faults()
    cluster = FakeCluster([a_node("n1")], [a_pod("u1", node_name="n1")], faults=faults)
    faults.fail("evict", RetryLater("throttled"))
    with pytest.raises(RetryLater):
        cluster.evict(cluster.pod_by_uid["u1"], 30)
    assert "u1" in cluster.pod_by_uid
    assert cluster.evict(cluster.pod_by_uid["u1"], 30).result is EvictionResult.ACCEPTED


def test_a_crash_after_the_effect_loses_only_the_answer() -> None:
    faults = Faults()
    cluster = FakeCluster([a_node("n1")], [a_pod("u1", node_name="n1")], faults=faults)
    faults.fail("*", Crash(), nth=2, after_effect=True)
    pods = cluster.pods_on_node("n1")
    with pytest.raises(Crash):
        cluster.evict(pods[0], 30)
    assert not cluster.pod_by_uid
    assert [call.name for call in faults.calls] == ["pods_on_node", "evict"]
    assert faults.raised == ["evict"]


def test_a_patch_of_a_node_that_changed_since_it_was_read_conflicts() -> None:
    cluster = FakeCluster([a_node("n1")])
    read = cluster.node("n1")
    cluster.annotate_node("n1", {"someone": "else"})
    with pytest.raises(Conflict):
        cluster.annotate_node("n1", {"ours": "1"}, read.resource_version)
    assert dict(cluster.node("n1").annotations) == {"someone": "else"}
