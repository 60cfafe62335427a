from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from firstbell.capacity.scheduling import Taint
from firstbell.cluster.cordons import (
    EXCLUDED_FROM_LOAD_BALANCERS,
    OUT_OF_SERVICE,
    CordonMark,
    cordon_patch,
    mark_of,
    out_of_service_patch,
    uncordon_patch,
    without_mark,
)
from tests.fakes import FakeCluster
from tests.unit.cluster.objects import a_node

if TYPE_CHECKING:
    from firstbell.capacity.cluster_view import Node

NOTICE = CordonMark("interruption", "spot", since=1_764_580_000.0, deadline=1_764_580_120.5)
QUIET = CordonMark("idle", "quiet-hours", since=1_764_570_000.0)
THEIRS = Taint("example.com/maintenance", "yes", "NoExecute", time_added="2026-12-01T09:00:00Z")


def test_a_cordon_is_one_patch_with_the_full_taint_list_and_the_version_it_was_read_at() -> None:
    patch = cordon_patch(a_node("n1", taints=(THEIRS,), resource_version="42"), NOTICE)
    assert patch == {
        "metadata": {
            "resourceVersion": "42",
            "annotations": {
                "firstbell.dev/interruption": "spot",
                "firstbell.dev/interruption-since": "2025-12-01T09:06:40Z",
                "firstbell.dev/interruption-deadline": "2025-12-01T09:08:40.500000Z",
                "firstbell.dev/interruption-set": "label,unschedulable",
            },
            "labels": {EXCLUDED_FROM_LOAD_BALANCERS: "true"},
        },
        "spec": {
            "unschedulable": True,
            "taints": [
                {
                    "key": "example.com/maintenance",
                    "value": "yes",
                    "effect": "NoExecute",
                    "timeAdded": "2026-12-01T09:00:00Z",
                },
                {"key": "firstbell.dev/interruption", "value": "spot", "effect": "NoSchedule"},
            ],
        },
    }


def test_a_mark_is_read_back_as_it_was_written() -> None:
    cluster = FakeCluster([a_node("n1")])
    marked = cluster.cordon(cluster.node("n1"), NOTICE)
    assert mark_of(marked, "interruption") == NOTICE
    assert mark_of(marked, "idle") is None


def test_times_that_somebody_rewrote_do_not_break_the_reading_of_a_mark() -> None:
    cluster = FakeCluster([a_node("n1")])
    marked = cluster.cordon(cluster.node("n1"), NOTICE)
    scribbled = replace(marked, annotations={**marked.annotations, "firstbell.dev/interruption-deadline": "soon"})
    assert mark_of(scribbled, "interruption") == replace(NOTICE, deadline=None)


def test_an_idle_mark_does_not_leave_the_load_balancers() -> None:
    patch = cordon_patch(a_node("n1"), QUIET)
    assert "labels" not in patch["metadata"]
    assert patch["metadata"]["annotations"]["firstbell.dev/idle-set"] == "unschedulable"


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(a_node("n1"), id="plain"),
        pytest.param(a_node("n1", unschedulable=True), id="already cordoned by somebody"),
        pytest.param(a_node("n1", labels={EXCLUDED_FROM_LOAD_BALANCERS: "mine"}), id="already excluded by somebody"),
        pytest.param(a_node("n1", taints=(THEIRS,), annotations={"theirs": "1"}), id="their taint and annotation"),
    ],
)
def test_an_uncordon_removes_only_what_the_cordon_set(before: Node) -> None:
    cluster = FakeCluster([before])
    cordoned = cluster.cordon(cluster.node("n1"), NOTICE)
    assert cordoned.unschedulable
    after = cluster.uncordon(cordoned, "interruption")
    assert _without_version(after) == _without_version(before)


def test_a_cordon_made_twice_still_knows_what_it_set_and_tightens_the_deadline() -> None:
    cluster = FakeCluster([a_node("n1")])
    sooner = replace(NOTICE, kind="state-change", deadline=1_764_580_060.0)
    twice = cluster.cordon(cluster.cordon(cluster.node("n1"), NOTICE), sooner)
    assert mark_of(twice, "interruption") == sooner
    assert twice.taints == (sooner.taint,)
    assert _without_version(cluster.uncordon(twice, "interruption")) == _without_version(a_node("n1"))


@pytest.mark.parametrize(("first", "second"), [(QUIET, NOTICE), (NOTICE, QUIET)])
def test_of_two_marks_the_one_that_stays_keeps_the_node_cordoned(first: CordonMark, second: CordonMark) -> None:
    cluster = FakeCluster([a_node("n1")])
    both = cluster.cordon(cluster.cordon(cluster.node("n1"), first), second)
    one = cluster.uncordon(both, first.reason)
    assert one.unschedulable
    assert one.taints == (second.taint,)
    assert mark_of(one, second.reason) == second
    assert _without_version(cluster.uncordon(one, second.reason)) == _without_version(a_node("n1"))


@pytest.mark.parametrize("before", [a_node("n1"), a_node("n1", unschedulable=True, taints=(THEIRS,))])
def test_what_lies_beneath_a_mark_is_the_node_as_others_left_it(before: Node) -> None:
    cluster = FakeCluster([before])
    beneath = without_mark(cluster.cordon(cluster.node("n1"), QUIET), "idle")
    assert (beneath.unschedulable, beneath.taints) == (before.unschedulable, before.taints)
    assert without_mark(before, "idle") is before


def test_the_taint_of_the_node_controller_goes_with_our_cordon_and_stays_with_another() -> None:
    controllers = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    cluster = FakeCluster([a_node("n1"), a_node("n2", unschedulable=True)])
    for name, taints in (("n1", ()), ("n2", (controllers,))):
        cordoned = cluster.cordon(cluster.node(name), QUIET)
        tainted = cluster.add_node(replace(cordoned, taints=(*cordoned.taints, controllers)))
        assert without_mark(tainted, "idle").taints == taints
        assert cluster.uncordon(tainted, "idle").taints == taints


def test_beneath_one_of_two_marks_lies_the_other() -> None:
    cluster = FakeCluster([a_node("n1")])
    both = cluster.cordon(cluster.cordon(cluster.node("n1"), QUIET), NOTICE)
    beneath = without_mark(both, "idle")
    assert (beneath.unschedulable, beneath.taints) == (True, (NOTICE.taint,))


def test_a_node_without_our_mark_is_not_uncordoned() -> None:
    assert uncordon_patch(a_node("n1", unschedulable=True), "interruption") is None


def test_the_out_of_service_taint_joins_the_others_and_leaves_the_cordon_alone() -> None:
    patch = out_of_service_patch(a_node("n1", taints=(THEIRS,), unschedulable=True, resource_version="7"))
    assert patch["metadata"] == {"resourceVersion": "7"}
    assert patch["spec"]["unschedulable"] is True
    assert [taint["key"] for taint in patch["spec"]["taints"]] == [THEIRS.key, OUT_OF_SERVICE.key]


def _without_version(node: Node) -> Node:
    return replace(node, resource_version="")
