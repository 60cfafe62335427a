from __future__ import annotations

from typing import Any

import pytest

from firstbell.capacity.affinity import Requirement, matches, required_terms
from firstbell.capacity.cluster_view import DaemonSet
from firstbell.capacity.daemonsets import daemonset_overhead
from firstbell.capacity.instance_types import node_labels
from firstbell.capacity.requests import pod_requests
from firstbell.capacity.resources import Resources
from firstbell.capacity.scheduling import Taint, Toleration
from tests.unit.capacity.described import facts

EVERYTHING = (Toleration(operator="Exists"),)
STUDENTS = Taint("hub.jupyter.org/dedicated", "user")


def add_on(*expressions: dict[str, Any]) -> dict[str, Any]:
    """The affinity of an EKS add-on's DaemonSet."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


AWS_NODE = add_on(
    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"]},
    {"key": "eks.amazonaws.com/compute-type", "operator": "NotIn", "values": ["fargate", "hybrid", "auto"]},
)


def daemonset(name: str, cpu: str, **fields: Any) -> DaemonSet:
    requests = pod_requests({"containers": [{"resources": {"requests": {"cpu": cpu}}}]})
    return DaemonSet(name=name, requests=requests, **fields)


def test_only_daemonsets_that_land_on_the_pools_labels_and_taints_take_room() -> None:
    """A pool at zero nodes: what will run there is known only from selectors, affinity and taints."""
    there = [
        daemonset("aws-node", "50m", affinity=required_terms(AWS_NODE), tolerations=EVERYTHING, host_network=True),
        daemonset("kube-proxy", "100m", tolerations=EVERYTHING, host_network=True),
        daemonset(
            "image-puller", "0", node_selector={"pool": "students"}, tolerations=(Toleration(STUDENTS.key, "Exists"),)
        ),
    ]
    elsewhere = [
        daemonset("log-agent", "1", tolerations=()),
        daemonset("gpu-plugin", "1", node_selector={"nvidia.com/gpu.present": "true"}, tolerations=EVERYTHING),
        daemonset("windows-proxy", "1", node_selector={"kubernetes.io/os": "windows"}, tolerations=EVERYTHING),
    ]
    labels = node_labels({"pool": "students"}, facts("m6g.large"))
    assert labels["kubernetes.io/arch"] == "arm64"
    assert daemonset_overhead(there + elsewhere, labels, (STUDENTS,)) == Resources(cpu_millicores=150, pods=3)


def test_a_taint_that_only_scores_keeps_no_daemonset_away() -> None:
    preferred = Taint("batch", effect="PreferNoSchedule")
    assert daemonset_overhead([daemonset("agent", "10m")], {}, (preferred,)) == Resources(cpu_millicores=10, pods=1)


@pytest.mark.parametrize(
    ("requirement", "matched"),
    [
        (Requirement("zone", "In", ("a", "b")), True),
        (Requirement("zone", "In", ("c",)), False),
        (Requirement("zone", "NotIn", ("c",)), True),
        (Requirement("absent", "NotIn", ("c",)), True),
        (Requirement("absent", "In", ("",)), False),
        (Requirement("zone", "Exists"), True),
        (Requirement("absent", "DoesNotExist"), True),
        (Requirement("cores", "Gt", ("7",)), True),
        (Requirement("cores", "Gt", ("8",)), False),
        (Requirement("cores", "Lt", ("9",)), True),
        (Requirement("zone", "Lt", ("9",)), False),
        (Requirement("absent", "Gt", ("-1",)), False),
        (Requirement("cores", "Gt", ()), False),
        (Requirement("zone", "Like", ("a",)), False),
    ],
)
def test_a_requirement_matches_as_the_scheduler_matches_it(requirement: Requirement, matched: bool) -> None:
    assert requirement.matches({"zone": "a", "cores": "8"}) is matched


def test_one_term_with_all_of_its_requirements_is_enough() -> None:
    a, b = Requirement("zone", "In", ("a",)), Requirement("disk", "Exists")
    assert matches((), {})
    assert matches(((a, b), (b,)), {"disk": "ssd"})
    assert not matches(((a, b),), {"zone": "a"})
    assert not matches(((),), {"zone": "a"})
    assert required_terms({"affinity": None}) == ()
