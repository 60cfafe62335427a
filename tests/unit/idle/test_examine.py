"""Is a node idle, or what keeps it?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from firstbell.capacity.budgets import Budget, Requirement
from firstbell.capacity.resources import Resources
from firstbell.capacity.scheduling import Taint
from firstbell.idle.examine import examine
from firstbell.idle.verdicts import Candidate, Finding
from tests.unit.idle.nodes import NOW, POOL, around, candidate, home, member, node, pod, system_pod

if TYPE_CHECKING:
    from firstbell.capacity.cluster_view import Pod
    from firstbell.idle.verdicts import Surroundings, Verdict


def examined(one: Candidate, surroundings: Surroundings | None = None) -> Verdict:
    [verdict] = examine([one], surroundings or around())
    return verdict


@pytest.mark.parametrize(
    "pods",
    [
        [],
        [pod("aws-node", "kube-system", owner_kind="DaemonSet")],
        [pod("fluentd", "logging", owner_kind="DaemonSet", safe_to_evict=False, local_storage=True)],
        [pod("kube-proxy", "kube-system", mirror=True)],
        [pod("done", finished=True), pod("failed", finished=True), pod("agent", owner_kind="DaemonSet")],
    ],
    ids=["nothing", "DaemonSet (case 52)", "DaemonSet that would block", "mirror pod", "finished pods (case 54)"],
)
def test_a_node_is_idle_with(pods: list[Pod]) -> None:
    assert examined(candidate("a", *pods)).finding is Finding.IDLE


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "user pod, bare: nothing would make it again"),
        ({"owner_kind": "Job"}, "user pod"),
        ({"owner_kind": "StatefulSet", "safe_to_evict": False}, 'user pod, annotation safe-to-evict: "false"'),
        ({"owner_kind": "StatefulSet", "do_not_disrupt": True}, 'user pod, annotation do-not-disrupt: "true"'),
        ({"owner_kind": "StatefulSet", "local_storage": True}, "user pod, local storage"),
        (
            {"owner_kind": "ReplicaSet", "labels": {"app": "jupyterhub", "component": "hub"}},
            "user pod, part of JupyterHub itself",
        ),
        (
            {"owner_kind": "Job", "terminating": True, "deletion_at": NOW + 30},
            "user pod, ending, with grace left",
        ),
        (
            {"owner_kind": "Job", "terminating": True, "deletion_at": NOW - 59},
            "user pod, ending, with grace left",
        ),
    ],
)
def test_cases_21_and_52_whoever_keeps_a_busy_node_is_named_with_the_reason(changes: dict[str, Any], why: str) -> None:
    verdict = examined(candidate("a", pod(**changes)))
    assert verdict.finding is Finding.BUSY
    [holder] = verdict.holders
    assert (holder.pod, holder.why) == ("hub/jupyter-ada", why)


def test_a_pod_long_past_its_grace_holds_nothing() -> None:
    over = pod(terminating=True, deletion_at=NOW - 60)
    assert examined(candidate("a", over)).finding is Finding.IDLE


def test_a_placeholder_holds_nothing_unless_it_says_so() -> None:
    pool = replace(POOL, preemptible={"component": "user-placeholder"})
    placeholder = pod("placeholder-1", labels={"component": "user-placeholder"})
    assert examined(candidate("a", placeholder), around(pool=pool)).finding is Finding.IDLE
    kept = replace(placeholder, safe_to_evict=False)
    assert examined(candidate("a", kept), around(pool=pool)).finding is Finding.BLOCKED


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}, Finding.HELD),
        ({"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "false"}}, Finding.IDLE),
        (
            {
                "annotations": {
                    "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true",
                    "firstbell.dev/hold": "true",
                }
            },
            Finding.IDLE,
        ),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, Finding.HELD),
        ({"taints": (Taint("ToBeDeletedByClusterAutoscaler", "1"),)}, Finding.LEAVING),
        ({"taints": (Taint("DeletionCandidateOfClusterAutoscaler", "1", "PreferNoSchedule"),)}, Finding.IDLE),
        ({"taints": (Taint("karpenter.sh/disrupted"),)}, Finding.LEAVING),
        ({"taints": (Taint("firstbell.dev/interruption", "spot"),), "unschedulable": True}, Finding.LEAVING),
        ({"unschedulable": True}, Finding.CORDONED),
        ({"ready": False}, Finding.UNREACHABLE),
    ],
)
def test_what_others_said_about_a_node_is_respected(changes: dict[str, Any], finding: Finding) -> None:
    assert examined(candidate("a", **changes)).finding is finding


def test_case_36_a_member_that_is_protected_from_scale_in_stays() -> None:
    protected = Candidate(member(protected_from_scale_in=True), node())
    assert examined(protected).finding is Finding.PROTECTED


@pytest.mark.parametrize("lifecycle", ["Pending", "Pending:Wait", "Standby", "EnteringStandby", "Detaching"])
def test_a_member_that_is_not_in_service_is_left_alone(lifecycle: str) -> None:
    assert examined(Candidate(member(lifecycle=lifecycle), node())).finding is Finding.NOT_IN_SERVICE


def test_an_instance_without_a_node_is_not_taken_for_an_idle_one() -> None:
    assert examined(Candidate(member())).finding is Finding.NOT_JOINED


def test_case_52_a_system_pod_moves_out_first_where_its_budget_says_that_it_may_and_there_is_room() -> None:
    verdict = examined(candidate("a", system_pod()), around(home()))
    assert verdict.finding is Finding.IDLE
    assert [p.name for p in verdict.moving] == ["coredns-1"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"labels": {"k8s-app": "other"}}, "system pod without a disruption budget"),
        ({"owner_kind": ""}, "system pod, bare: nothing would make it again"),
        ({"local_storage": True}, "system pod, local storage"),
        ({"safe_to_evict": False}, 'annotation safe-to-evict: "false"'),
        ({"do_not_disrupt": True}, 'annotation do-not-disrupt: "true"'),
        ({"requests": Resources(4000, pods=1)}, "system pod that fits on no node that stays"),
        ({"node_selector": {"disk": "ssd"}}, "system pod that fits on no node that stays"),
        ({"zones": ("us-west-2b",)}, "system pod that fits on no node that stays"),
    ],
)
def test_case_52_any_other_system_pod_keeps_its_node_and_is_named(changes: dict[str, Any], why: str) -> None:
    verdict = examined(candidate("a", system_pod(**changes)), around(home()))
    assert verdict.finding is Finding.BLOCKED
    assert [(h.pod, h.why) for h in verdict.holders] == [("kube-system/coredns-1", why)]


@pytest.mark.parametrize("changes", [{"labels": {}}, {"labels": {}, "local_storage": True}])
def test_the_annotation_safe_to_evict_stands_for_a_budget(changes: dict[str, Any]) -> None:
    assert examined(candidate("a", system_pod(safe_to_evict=True, **changes)), around(home())).finding is Finding.IDLE


def test_system_pods_gather_on_one_of_the_idle_nodes_and_the_others_go() -> None:
    nodes = [candidate(name, system_pod(f"coredns-{name}")) for name in "abc"]
    homes = [home(c.node.name) for c in nodes if c.node]
    verdicts = examine(nodes, around(*homes))
    assert [v.finding for v in verdicts] == [Finding.IDLE, Finding.NEEDED, Finding.IDLE]


def test_a_node_that_takes_only_so_many_pods_is_home_to_no_more() -> None:
    nodes = [candidate(name, system_pod(f"coredns-{name}")) for name in "ab"]
    verdicts = examine(nodes, around(home("other", Resources(100, 2**30, pods=1))))
    assert [v.finding for v in verdicts] == [Finding.IDLE, Finding.BLOCKED]


def test_a_node_that_we_cordoned_is_nobodys_home() -> None:
    going = candidate("a", marked_at=NOW - 60)
    blocked = candidate("b", system_pod())
    verdicts = examine([blocked, going], around(home("a"), home("b")))
    assert [(v.node_name, v.finding) for v in verdicts] == [("a", Finding.IDLE), ("b", Finding.BLOCKED)]


def test_at_the_very_end_system_pods_hold_nothing_but_what_is_marked_still_does() -> None:
    end = around(whole_cluster_goes=True)
    free = [candidate("a", system_pod()), candidate("b", system_pod(labels={}))]
    assert [v.finding for v in examine(free, end)] == [Finding.IDLE, Finding.IDLE]
    assert all(not v.moving for v in examine(free, end))
    marked = [candidate("a", system_pod(safe_to_evict=False)), candidate("b", system_pod(owner_kind=""))]
    assert [v.finding for v in examine(marked, end)] == [Finding.BLOCKED, Finding.BLOCKED]


@pytest.mark.parametrize(
    ("budget", "covered"),
    [
        (Budget("kube-system"), True),
        (Budget("default"), False),
        (Budget("kube-system", {"k8s-app": "kube-dns"}), True),
        (Budget("kube-system", {"k8s-app": "other"}), False),
        (Budget("kube-system", requirements=(Requirement("k8s-app", "In", ("a", "kube-dns")),)), True),
        (Budget("kube-system", requirements=(Requirement("k8s-app", "NotIn", ("kube-dns",)),)), False),
        (Budget("kube-system", requirements=(Requirement("k8s-app", "Exists"),)), True),
        (Budget("kube-system", requirements=(Requirement("k8s-app", "DoesNotExist"),)), False),
    ],
)
def test_a_budget_covers_what_its_selector_selects(budget: Budget, covered: bool) -> None:
    assert budget.covers(system_pod()) is covered
