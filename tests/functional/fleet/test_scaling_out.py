"""Groups that grow: boots, nodes, sizes, refusals. Rows "Scaling out" of localcloud/README.md."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from tests.functional.fleet.conftest import BOOT_SECONDS, ZONES, World


def test_an_instance_is_pending_then_in_service_and_its_node_joins_after_the_boot(world: World) -> None:
    world.group(desired=1)
    (instance_id,) = world.ids()
    assert world.states()[instance_id] == "Pending"
    assert not world.nodes.nodes

    world.advance(BOOT_SECONDS * 0.4)
    assert world.states()[instance_id] == "InService"
    assert not world.nodes.nodes, "running is not yet joined"

    world.advance(BOOT_SECONDS * 0.6)
    (node,) = world.nodes.nodes.values()
    assert node["spec"]["providerID"] == f"aws:///us-west-2a/{instance_id}"
    assert node["metadata"]["name"].endswith(".us-west-2.compute.internal")


def test_a_node_has_the_recorded_size_the_group_s_labels_and_its_registration_taints(world: World) -> None:
    world.group(desired=1)
    world.advance(BOOT_SECONDS)

    (node,) = world.nodes.nodes.values()
    assert node["status"]["allocatable"]["memory"] == "14880156Ki"
    assert node["status"]["allocatable"]["cpu"] == "3920m"
    assert node["status"]["allocatable"]["pods"] == "58"
    labels = node["metadata"]["labels"]
    assert labels["hub.jupyter.org/pool-name"] == "notebook"
    assert labels["node.kubernetes.io/instance-type"] == "m5.xlarge"
    assert labels["topology.kubernetes.io/zone"] == "us-west-2a"
    assert node["spec"]["taints"] == [{"key": "hub.jupyter.org/dedicated", "value": "user", "effect": "NoSchedule"}]
    (csi_node,) = world.nodes.csi_nodes.values()
    assert csi_node["spec"]["drivers"][0]["allocatable"] == {"count": 25}


def test_node_template_tags_stand_in_where_user_data_says_nothing(world: World) -> None:
    template = {"LaunchTemplateId": world.template("bare", user_data="#!/bin/sh\n"), "Version": "$Latest"}
    prefix = "k8s.io/cluster-autoscaler/node-template"
    tags = [
        {"Key": f"{prefix}/label/team", "Value": "bio", "PropagateAtLaunch": True},
        {"Key": f"{prefix}/taint/k8s.dask.org/dedicated", "Value": "worker:NoSchedule", "PropagateAtLaunch": True},
    ]
    world.group(desired=1, LaunchTemplate=template, Tags=tags)
    world.advance(BOOT_SECONDS)

    (node,) = world.nodes.nodes.values()
    assert node["metadata"]["labels"]["team"] == "bio"
    assert node["spec"]["taints"] == [{"key": "k8s.dask.org/dedicated", "value": "worker", "effect": "NoSchedule"}]


def test_a_type_that_nobody_recorded_is_refused_with_the_types_that_are(world: World) -> None:
    template = {"LaunchTemplateId": world.template("x", instance_type="x1e.32xlarge"), "Version": "$Latest"}
    with pytest.raises(ClientError, match=r"no recorded node of type x1e\.32xlarge; recorded are .*m5\.xlarge"):
        world.group(LaunchTemplate=template)


def test_a_group_tag_sets_its_own_boot_time(world: World) -> None:
    world.group(desired=1, Tags=[{"Key": "localcloud:boot-seconds", "Value": "2", "PropagateAtLaunch": False}])
    world.advance(2)
    assert len(world.nodes.nodes) == 1


def test_desired_capacity_above_the_maximum_is_refused_in_aws_s_words(world: World) -> None:
    """Case 33: the whole request is refused, nothing is capped."""
    world.group(desired=0, MaxSize=10)
    with pytest.raises(ClientError, match="New SetDesiredCapacity value 16 is above max value 10 for the AutoScaling"):
        world.want(16)
    assert world.shown()["DesiredCapacity"] == 0


def test_desired_capacity_below_the_minimum_is_refused(world: World) -> None:
    world.group(desired=2, MinSize=2)
    with pytest.raises(ClientError, match="New SetDesiredCapacity value 1 is below min value 2 for the AutoScaling"):
        world.want(1)


def test_an_unknown_group_is_refused(world: World) -> None:
    with pytest.raises(ClientError, match="AutoScalingGroup name not found"):
        world.want(1, "nobody")


def test_sizes_that_contradict_each_other_are_refused(world: World) -> None:
    with pytest.raises(ClientError, match="Desired capacity:5 must be between the specified min size:0 and max size:3"):
        world.group(desired=5, MaxSize=3)


def test_a_group_without_a_launch_source_or_with_an_unknown_template_is_refused(world: World) -> None:
    with pytest.raises(ClientError, match="must contain either LaunchTemplate"):
        world.autoscaling.create_auto_scaling_group(
            AutoScalingGroupName="x", MinSize=0, MaxSize=1, AvailabilityZones=ZONES
        )
    with pytest.raises(ClientError, match="does not exist"):
        world.group(LaunchTemplate={"LaunchTemplateName": "nothing"})


def test_a_second_group_of_the_same_name_is_refused(world: World) -> None:
    world.group()
    with pytest.raises(ClientError, match="AlreadyExists"):
        world.group(LaunchTemplate={"LaunchTemplateName": "pool"})


def test_new_instances_go_where_the_zone_has_the_fewest(world: World) -> None:
    world.group(desired=7, zones=ZONES)
    zones = sorted(one["AvailabilityZone"] for one in world.shown()["Instances"])
    assert [zones.count(zone) for zone in ZONES] == [3, 2, 2]


def test_weights_count_as_units_and_not_as_instances(world: World) -> None:
    """Case 40: overrides of weights 1 and 2, desired 4 = 3 instances."""
    policy = {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": {"LaunchTemplateId": world.template("mixed"), "Version": "$Latest"},
            "Overrides": [
                {"InstanceType": "m5.xlarge", "WeightedCapacity": "1"},
                {"InstanceType": "m5.2xlarge", "WeightedCapacity": "2"},
            ],
        },
        "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0},
    }
    world.group(desired=4, MixedInstancesPolicy=policy)
    world.advance(BOOT_SECONDS)

    shown = world.shown()
    assert sorted(int(one["WeightedCapacity"]) for one in shown["Instances"]) == [1, 1, 2]
    assert {n["metadata"]["labels"]["eks.amazonaws.com/capacityType"] for n in world.nodes.nodes.values()} == {"SPOT"}
    assert (
        shown["MixedInstancesPolicy"]["LaunchTemplate"]["LaunchTemplateSpecification"]["LaunchTemplateName"] == "mixed"
    )


def test_weights_for_some_types_only_are_refused(world: World) -> None:
    launch = {
        "LaunchTemplateSpecification": {"LaunchTemplateId": world.template("mixed"), "Version": "$Latest"},
        "Overrides": [{"InstanceType": "m5.xlarge", "WeightedCapacity": "1"}, {"InstanceType": "m5.2xlarge"}],
    }
    with pytest.raises(ClientError, match="WeightedCapacity"):
        world.group(MixedInstancesPolicy={"LaunchTemplate": launch})


def test_a_suspended_launch_accepts_the_capacity_and_launches_nothing_until_resumed(world: World) -> None:
    """Case 39: the call succeeds and nothing comes."""
    world.group()
    world.autoscaling.suspend_processes(AutoScalingGroupName="pool", ScalingProcesses=["Launch"])
    world.want(3)
    world.advance(600)
    assert world.shown()["DesiredCapacity"] == 3
    assert world.ids() == []
    assert [one["ProcessName"] for one in world.shown()["SuspendedProcesses"]] == ["Launch"]

    world.autoscaling.resume_processes(AutoScalingGroupName="pool", ScalingProcesses=["Launch"])
    world.advance(0)
    assert len(world.ids()) == 3


def test_an_unknown_process_is_refused(world: World) -> None:
    world.group()
    with pytest.raises(ClientError, match="is not a valid process type"):
        world.autoscaling.suspend_processes(AutoScalingGroupName="pool", ScalingProcesses=["Lunch"])


def test_a_launch_says_why_in_aws_s_words(world: World) -> None:
    world.group(desired=0)
    world.want(1)
    world.advance(BOOT_SECONDS)

    (activity,) = world.activities()
    assert activity["StatusCode"] == "Successful"
    assert activity["Progress"] == 100
    assert (
        "a user request explicitly set group desired capacity changing the desired capacity from 0 to 1.  At"
        in (activity["Cause"])
    )
    assert (
        "in response to a difference between desired and actual capacity, increasing the capacity from 0 to 1."
        in (activity["Cause"])
    )


def test_an_update_says_the_constraints_and_moves_desired_into_them(world: World) -> None:
    world.group(desired=3)
    world.autoscaling.update_auto_scaling_group(AutoScalingGroupName="pool", MaxSize=20, DesiredCapacity=5)
    world.advance(0)
    assert (
        "a user request update of AutoScalingGroup constraints to min: 0, max: 20, desired: 5 changing the desired "
        in (world.activities()[0]["Cause"])
    )
    world.autoscaling.update_auto_scaling_group(AutoScalingGroupName="pool", MaxSize=2)
    assert world.shown()["DesiredCapacity"] == 2
    world.autoscaling.update_auto_scaling_group(AutoScalingGroupName="pool", MaxSize=8, MinSize=4)
    assert world.shown()["DesiredCapacity"] == 4


def test_a_cooldown_is_honoured_only_where_the_caller_asks(world: World) -> None:
    world.group(desired=1)
    with pytest.raises(ClientError, match=r"ScalingActivityInProgress.*is in progress and blocks this action"):
        world.autoscaling.set_desired_capacity(AutoScalingGroupName="pool", DesiredCapacity=2, HonorCooldown=True)
    world.want(2)
    world.advance(BOOT_SECONDS + 301)
    world.autoscaling.set_desired_capacity(AutoScalingGroupName="pool", DesiredCapacity=3, HonorCooldown=True)


def test_launches_are_announced_as_events(world: World) -> None:
    world.group(desired=1)
    world.advance(BOOT_SECONDS)
    (instance_id,) = world.ids()
    (launched,) = world.heard.details("EC2 Instance Launch Successful")
    assert launched["EC2InstanceId"] == instance_id
    assert launched["Details"]["Availability Zone"] == "us-west-2a"
    states = [detail["state"] for detail in world.heard.details("EC2 Instance State-change Notification")]
    assert states == ["pending", "running"]
