"""Lifecycle hooks that really hold. Rows "Lifecycle hooks" of localcloud/README.md."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.functional.fleet.conftest import BOOT_SECONDS, World

TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"


def held(world: World, **members: Any) -> str:
    """A group whose only instance waits to be terminated under the hook `drain`."""
    world.group(desired=1)
    world.advance(BOOT_SECONDS)
    put_hook(world, **members)
    (instance_id,) = world.ids()
    world.autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=instance_id, ShouldDecrementDesiredCapacity=True
    )
    world.advance(0)
    return instance_id


def put_hook(world: World, name: str = "drain", transition: str = TERMINATING, **members: Any) -> None:
    world.autoscaling.put_lifecycle_hook(
        AutoScalingGroupName="pool", LifecycleHookName=name, LifecycleTransition=transition, **members
    )


def complete(world: World, result: str = "CONTINUE", name: str = "drain", **members: Any) -> None:
    world.autoscaling.complete_lifecycle_action(
        AutoScalingGroupName="pool", LifecycleHookName=name, LifecycleActionResult=result, **members
    )
    world.advance(0)


def test_a_terminating_instance_waits_with_its_node_until_the_action_is_completed(world: World) -> None:
    instance_id = held(world)
    world.advance(1000)
    assert world.states() == {instance_id: "Terminating:Wait"}
    assert world.node_of(instance_id) in world.nodes.nodes
    assert world.activities()[0]["StatusCode"] == "MidLifecycleAction"

    complete(world, InstanceId=instance_id)
    world.advance(60)
    assert world.states() == {}
    assert not world.nodes.nodes


def test_completing_by_token_works_and_completing_twice_is_refused(world: World) -> None:
    """Case 28: the token is used up, and the refusal says so."""
    instance_id = held(world)
    (action,) = world.heard.details("EC2 Instance-terminate Lifecycle Action")
    complete(world, LifecycleActionToken=action["LifecycleActionToken"])
    with pytest.raises(ClientError, match=f"No active Lifecycle Action found with instance ID {instance_id}"):
        complete(world, InstanceId=instance_id)
    with pytest.raises(ClientError, match="No active Lifecycle Action found with token"):
        complete(world, LifecycleActionToken=action["LifecycleActionToken"])


def test_a_wrong_hook_name_is_refused_differently(world: World) -> None:
    instance_id = held(world)
    with pytest.raises(ClientError, match="No Lifecycle Hook found with name other"):
        complete(world, name="other", InstanceId=instance_id)


def test_the_heartbeat_timeout_ends_the_wait_with_the_default_result(world: World) -> None:
    instance_id = held(world, HeartbeatTimeout=300, DefaultResult="CONTINUE")
    world.advance(299)
    assert world.states() == {instance_id: "Terminating:Wait"}
    world.advance(30)
    assert world.states() == {}


def test_heartbeats_prolong_the_wait_but_not_past_the_global_timeout(world: World) -> None:
    """Case 29 and 30: the total is capped at 100 heartbeats."""
    instance_id = held(world, HeartbeatTimeout=30)
    while "Terminating:Wait" in world.states().values():
        world.autoscaling.record_lifecycle_action_heartbeat(
            AutoScalingGroupName="pool", LifecycleHookName="drain", InstanceId=instance_id
        )
        world.advance(20)
    begun = world.activities()[0]["StartTime"].timestamp()
    assert 3000 <= world.clock.now - begun < 3020
    with pytest.raises(ClientError, match="No active Lifecycle Action found"):
        world.autoscaling.record_lifecycle_action_heartbeat(
            AutoScalingGroupName="pool", LifecycleHookName="drain", InstanceId=instance_id
        )


def test_a_launch_hook_holds_the_instance_out_of_service(world: World) -> None:
    world.group(desired=0)
    put_hook(world, "prepare", LAUNCHING)
    world.want(1)
    world.advance(BOOT_SECONDS)
    (instance_id,) = world.ids()
    assert world.states()[instance_id] == "Pending:Wait"
    complete(world, name="prepare", InstanceId=instance_id)
    assert world.states()[instance_id] == "InService"


def test_an_abandoned_launch_is_terminated_and_tried_again(world: World) -> None:
    world.group(desired=0)
    put_hook(world, "prepare", LAUNCHING)
    world.want(1)
    world.advance(BOOT_SECONDS)
    (first,) = world.ids()
    complete(world, "ABANDON", "prepare", InstanceId=first)
    world.advance(BOOT_SECONDS)
    (second,) = world.ids()
    assert second != first
    cancelled = [one for one in world.activities() if one["StatusCode"] == "Cancelled"]
    assert "was abandoned" in cancelled[0]["StatusMessage"]


def test_two_hooks_hold_until_both_are_completed_and_abandon_ends_both(world: World) -> None:
    world.group(desired=2)
    world.advance(BOOT_SECONDS)
    put_hook(world, "drain")
    put_hook(world, "backup")
    first, second = world.ids()
    for instance_id in (first, second):
        world.autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId=instance_id, ShouldDecrementDesiredCapacity=True
        )
    complete(world, "CONTINUE", "drain", InstanceId=first)
    complete(world, "ABANDON", "drain", InstanceId=second)
    world.advance(60)
    assert world.states() == {first: "Terminating:Wait"}


def test_a_detached_instance_passes_no_hook(world: World) -> None:
    world.group(desired=1)
    world.advance(BOOT_SECONDS)
    put_hook(world)
    world.autoscaling.detach_instances(
        AutoScalingGroupName="pool", InstanceIds=world.ids(), ShouldDecrementDesiredCapacity=True
    )
    assert world.heard.details("EC2 Instance-terminate Lifecycle Action") == []


def test_a_forced_deletion_does_not_wait_for_hooks(world: World) -> None:
    held(world)
    world.autoscaling.delete_auto_scaling_group(AutoScalingGroupName="pool", ForceDelete=True)
    world.advance(60)
    assert world.shown() == {}


def test_deleting_a_hook_continues_what_it_held(world: World) -> None:
    held(world)
    world.autoscaling.delete_lifecycle_hook(AutoScalingGroupName="pool", LifecycleHookName="drain")
    world.advance(60)
    assert world.states() == {}


def test_a_queue_gets_the_flat_body_and_first_a_test_notification(world: World) -> None:
    """Case 2: no `source` and no `detail-type` there."""
    arn = "arn:aws:sqs:us-west-2:000000000000:interruptions"
    instance_id = held(world, NotificationTargetARN=arn, RoleARN="arn:aws:iam::000000000000:role/r")
    (test_target, test), (target, notice) = world.heard.notices
    assert test_target == target == arn
    assert test["Event"] == "autoscaling:TEST_NOTIFICATION"
    assert notice["LifecycleTransition"] == TERMINATING
    assert notice["EC2InstanceId"] == instance_id
    assert notice["Service"] == "AWS Auto Scaling"
    assert "detail-type" not in notice


def test_hooks_are_shown_with_their_global_timeout_and_checked(world: World) -> None:
    world.group()
    put_hook(world, HeartbeatTimeout=7200)
    (shown,) = world.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName="pool")["LifecycleHooks"]
    assert shown["GlobalTimeout"] == 48 * 3600
    assert shown["DefaultResult"] == "ABANDON"
    put_hook(world, HeartbeatTimeout=60)
    (shown,) = world.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName="pool")["LifecycleHooks"]
    assert shown["GlobalTimeout"] == 6000
    with pytest.raises(ClientError, match="HeartbeatTimeout must be between 30 and 7200"):
        put_hook(world, HeartbeatTimeout=5)


def test_an_instance_that_ec2_ended_while_it_waits_still_waits_for_its_hook(world: World) -> None:
    instance_id = held(world)
    world.ec2.terminate_instances(InstanceIds=[instance_id])
    world.advance(10)
    assert world.states() == {instance_id: "Terminating:Wait"}
    assert not world.nodes.nodes
    complete(world, InstanceId=instance_id)
    world.advance(10)
    assert world.states() == {}
