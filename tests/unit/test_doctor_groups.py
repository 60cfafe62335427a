"""Settings of groups that fight us, one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cli.doctor.groups import GroupSettings, _scales_in, fights
from firstbell.capacity.pools import Pool
from firstbell.capacity.resources import Resources
from firstbell.capacity.scheduling import Taint

POOL = Pool(name="notebook", pod=Resources(pods=1), group="asg", stateful=True)
WELL = GroupSettings(
    "asg",
    max_size=5,
    zones=("us-west-2a", "us-west-2b"),
    suspended=frozenset({"AZRebalance"}),
    tags={"kubernetes.io/cluster/hub": "owned"},
    terminate_hooks=("firstbell-drain",),
)
CA = {"k8s.io/cluster-autoscaler/enabled": "true", **WELL.tags}


def problems(pool: Pool = POOL, **settings: Any) -> list[tuple[str, str]]:
    return [(f.severity, f.problem) for f in fights(pool, replace(WELL, **settings), "hub")]


def test_a_group_that_is_as_it_should_be_has_no_finding() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("settings", "severity", "words"),
    [
        ({"suspended": frozenset()}, "warning", "AZRebalance ends busy instances"),
        ({"suspended": frozenset({"AZRebalance", "Launch"})}, "error", "Launch process is suspended"),
        ({"max_size": 0}, "error", "MaxSize is 0"),
        ({"spot": True}, "error", "stateful"),
        ({"capacity_rebalance": True}, "warning", "CapacityRebalance"),
        ({"scale_in_policies": ("p",)}, "error", "policy p scales in"),
        ({"scheduled_actions": ("night",)}, "warning", "scheduled action night"),
        ({"longest_life_seconds": 7 * 86400}, "warning", "7 days old"),
        ({"tags": {}}, "warning", "no tag kubernetes.io/cluster/hub"),
        ({"tags": CA, "weighted": True}, "error", "takes its units for instances"),
        ({"terminate_hooks": ()}, "warning", "no terminate hook firstbell-drain"),
    ],
)
def test_each_setting_that_fights_us_is_one_finding(settings: dict[str, Any], severity: str, words: str) -> None:
    ((found, problem),) = problems(**settings)
    assert found == severity
    assert words in problem


def test_one_zone_needs_no_suspended_rebalancing() -> None:
    assert problems(suspended=frozenset(), zones=("us-west-2a",)) == []


def test_what_could_not_be_read_is_no_finding_of_the_group() -> None:
    assert problems(terminate_hooks=None, scale_in_policies=None, scheduled_actions=None) == []


def test_a_managed_node_group_has_eks_s_own_tags_hooks_and_rebalancing() -> None:
    managed = replace(POOL, group=None, nodegroup="ng", stateful=False)
    assert problems(managed, tags=CA, terminate_hooks=(), capacity_rebalance=True) == []


def test_cluster_autoscaler_has_to_know_the_nodes_of_an_empty_group() -> None:
    pool = replace(POOL, labels={"hub/pool": "n"}, taints=(Taint("hub/dedicated", "user"),))
    ((severity, _),) = problems(pool, tags=CA)
    assert severity == "warning"
    template = "k8s.io/cluster-autoscaler/node-template/"
    known = {f"{template}label/hub/pool": "n", f"{template}taint/hub/dedicated": "user:NoSchedule"}
    assert problems(pool, tags=CA | known) == []


@pytest.mark.parametrize(
    ("policy", "scales_in"),
    [
        ({"PolicyType": "TargetTrackingScaling", "TargetTrackingConfiguration": {}}, True),
        ({"PolicyType": "TargetTrackingScaling", "TargetTrackingConfiguration": {"DisableScaleIn": True}}, False),
        ({"PolicyType": "StepScaling", "StepAdjustments": [{"ScalingAdjustment": 2}]}, False),
        ({"PolicyType": "StepScaling", "StepAdjustments": [{"ScalingAdjustment": -2}]}, True),
        ({"PolicyType": "SimpleScaling", "ScalingAdjustment": 1, "AdjustmentType": "ChangeInCapacity"}, False),
        ({"PolicyType": "SimpleScaling", "ScalingAdjustment": 1, "AdjustmentType": "ExactCapacity"}, True),
        ({"PolicyType": "PredictiveScaling"}, False),
    ],
)
def test_only_policies_that_can_lower_desired_scale_in(policy: dict[str, Any], scales_in: bool) -> None:
    assert _scales_in(policy) is scales_in
