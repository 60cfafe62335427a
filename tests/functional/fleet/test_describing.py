"""What the Describe calls show, in pages; EC2 beside it. Rows "Describing" of localcloud/README.md."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from tests.functional.fleet.conftest import BOOT_SECONDS, World


def test_groups_come_in_pages_and_by_tag(world: World) -> None:
    template = {"LaunchTemplateId": world.template("t"), "Version": "$Latest"}
    for number in range(7):
        tags = [{"Key": "kubernetes.io/cluster/hub", "Value": "owned" if number < 3 else "shared"}]
        world.group(f"pool-{number}", LaunchTemplate=template, Tags=tags)
    pages = world.autoscaling.get_paginator("describe_auto_scaling_groups").paginate(PaginationConfig={"PageSize": 3})
    names = [[group["AutoScalingGroupName"] for group in page["AutoScalingGroups"]] for page in pages]
    assert [len(page) for page in names] == [3, 3, 1]
    owned = world.autoscaling.describe_auto_scaling_groups(
        Filters=[{"Name": "tag:kubernetes.io/cluster/hub", "Values": ["owned"]}]
    )
    assert len(owned["AutoScalingGroups"]) == 3


def test_more_than_a_page_at_once_and_a_false_token_are_refused(world: World) -> None:
    with pytest.raises(ClientError, match="less than or equal to 100"):
        world.autoscaling.describe_auto_scaling_groups(MaxRecords=101)
    with pytest.raises(ClientError, match="InvalidNextToken"):
        world.autoscaling.describe_auto_scaling_groups(NextToken="other")


def test_activities_come_in_pages_the_newest_first_and_those_in_progress_before_them(world: World) -> None:
    world.group()
    for desired in range(1, 6):
        world.want(desired)
        world.advance(BOOT_SECONDS)
    world.want(6)
    pages = world.autoscaling.get_paginator("describe_scaling_activities").paginate(
        AutoScalingGroupName="pool", PaginationConfig={"PageSize": 4}
    )
    shown = [activity for page in pages for activity in page["Activities"]]
    assert len(shown) == 6
    assert shown[0]["StatusCode"] == "PreInService"
    starts = [activity["StartTime"] for activity in shown[1:]]
    assert starts == sorted(starts, reverse=True)


def test_members_are_shown_across_groups(world: World) -> None:
    world.group("a", desired=1)
    world.group("b", desired=2)
    shown = world.autoscaling.describe_auto_scaling_instances()["AutoScalingInstances"]
    assert sorted(one["AutoScalingGroupName"] for one in shown) == ["a", "b", "b"]
    assert {one["HealthStatus"] for one in shown} == {"HEALTHY"}


def test_tags_are_written_changed_and_deleted(world: World) -> None:
    world.group()
    tag = {"ResourceId": "pool", "ResourceType": "auto-scaling-group", "Key": "team", "PropagateAtLaunch": True}
    world.autoscaling.create_or_update_tags(Tags=[{**tag, "Value": "bio"}])
    world.autoscaling.create_or_update_tags(Tags=[{**tag, "Value": "chem"}])
    shown = world.autoscaling.describe_tags(Filters=[{"Name": "key", "Values": ["team"]}])["Tags"]
    assert [one["Value"] for one in shown] == ["chem"]
    world.want(1)
    (reservation,) = world.ec2.describe_instances(InstanceIds=world.ids())["Reservations"]
    tags = {one["Key"]: one["Value"] for one in reservation["Instances"][0]["Tags"]}
    assert tags["team"] == "chem"
    assert tags["aws:autoscaling:groupName"] == "pool"
    world.autoscaling.delete_tags(Tags=[{**tag, "Value": "chem"}])
    assert world.autoscaling.describe_tags()["Tags"] == []


def test_target_groups_of_a_group_are_remembered(world: World) -> None:
    world.group()
    arn = "arn:aws:elasticloadbalancing:us-west-2:000000000000:targetgroup/hub/1"
    world.autoscaling.attach_load_balancer_target_groups(AutoScalingGroupName="pool", TargetGroupARNs=[arn])
    assert world.shown()["TargetGroupARNs"] == [arn]
    (shown,) = world.autoscaling.describe_load_balancer_target_groups(AutoScalingGroupName="pool")[
        "LoadBalancerTargetGroups"
    ]
    assert shown["LoadBalancerTargetGroupARN"] == arn
    world.autoscaling.detach_load_balancer_target_groups(AutoScalingGroupName="pool", TargetGroupARNs=[arn])
    assert world.shown()["TargetGroupARNs"] == []


def test_an_instance_refresh_can_be_seen_and_cancelled_and_is_alone(world: World) -> None:
    world.group(desired=1)
    started = world.autoscaling.start_instance_refresh(AutoScalingGroupName="pool")["InstanceRefreshId"]
    with pytest.raises(ClientError, match="InstanceRefreshInProgress"):
        world.autoscaling.start_instance_refresh(AutoScalingGroupName="pool")
    (shown,) = world.autoscaling.describe_instance_refreshes(AutoScalingGroupName="pool")["InstanceRefreshes"]
    assert (shown["InstanceRefreshId"], shown["Status"]) == (started, "InProgress")
    world.autoscaling.cancel_instance_refresh(AutoScalingGroupName="pool")
    (shown,) = world.autoscaling.describe_instance_refreshes(AutoScalingGroupName="pool")["InstanceRefreshes"]
    assert shown["Status"] == "Cancelled"


def test_ec2_knows_the_instances_their_states_and_every_type(world: World) -> None:
    world.group(desired=1)
    (instance_id,) = world.ids()

    def state() -> str:
        answer = world.ec2.describe_instances(InstanceIds=[instance_id])
        return str(answer["Reservations"][0]["Instances"][0]["State"]["Name"])

    assert state() == "pending"
    world.advance(BOOT_SECONDS)
    assert state() == "running"
    types = world.ec2.describe_instance_types(InstanceTypes=["m5.xlarge"])["InstanceTypes"]
    assert types[0]["VCpuInfo"]["DefaultVCpus"] == 4
    zones = {subnet["AvailabilityZone"] for subnet in world.ec2.describe_subnets()["Subnets"]}
    assert {"us-west-2a", "us-west-2b", "us-west-2c"} <= zones


def test_an_action_that_the_fleet_does_not_have_is_refused(world: World) -> None:
    world.group()
    with pytest.raises(ClientError, match="InvalidAction"):
        world.autoscaling.put_scaling_policy(AutoScalingGroupName="pool", PolicyName="p", PolicyType="StepScaling")
