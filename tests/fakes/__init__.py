"""Recording fakes of the adapters. They subclass the real ones, so mypy holds their signatures together."""

from tests.fakes.autoscaling import FakeAutoScaling
from tests.fakes.aws import FakeBus, FakeEks, FakeInstances, FakeInstanceTypes, FakeLoadBalancers
from tests.fakes.cluster import FakeCluster
from tests.fakes.faults import Call, Crash, Faults

__all__ = [
    "Call",
    "Crash",
    "FakeAutoScaling",
    "FakeBus",
    "FakeCluster",
    "FakeEks",
    "FakeInstanceTypes",
    "FakeInstances",
    "FakeLoadBalancers",
    "Faults",
]
