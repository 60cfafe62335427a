"""Groups that shrink: victims, protection, detaching, replacing, zones. Rows "Scaling in" of localcloud/README.md."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from tests.functional.fleet.conftest import BOOT_SECONDS, ZONES, World


def grown(world: World, desired: int, **members: object) -> list[str]:
    world.group(desired=desired, **members)  # type: ignore[arg-type]
    world.advance(BOOT_SECONDS)
    return world.ids()


def test_lowering_desired_kills_the_busiest_node_first(world: World) -> None:
    """Case 36: the group picks the victims, and not the empty ones."""
    ids = grown(world, 3)
    world.nodes.busy = {world.node_of(ids[0]): 0, world.node_of(ids[1]): 7, world.node_of(ids[2]): 2}
    world.want(2)
    world.advance(60)

    assert sorted(world.ids()) == sorted([ids[0], ids[2]])
    assert world.node_of(ids[1]) not in world.nodes.nodes
    activity = next(one for one in world.activities() if one["Description"].startswith("Terminating"))
    assert f"instance {ids[1]} was selected for termination." in activity["Cause"]


def test_scale_in_protection_is_respected_and_said(world: World) -> None:
    ids = grown(world, 2)
    world.autoscaling.set_instance_protection(AutoScalingGroupName="pool", InstanceIds=ids, ProtectedFromScaleIn=True)
    world.want(0)
    world.advance(60)

    assert sorted(world.ids()) == sorted(ids)
    assert world.shown()["DesiredCapacity"] == 0
    failed = [one for one in world.activities() if one["StatusCode"] == "Failed"]
    assert [one["StatusMessage"] for one in failed] == [
        "Could not scale to desired capacity because all remaining instances are protected from scale-in."
    ]


def test_a_pending_instance_cannot_be_protected(world: World) -> None:
    world.group(desired=1)
    with pytest.raises(ClientError, match="is not in InService or EnteringStandby or Standby"):
        world.autoscaling.set_instance_protection(
            AutoScalingGroupName="pool", InstanceIds=world.ids(), ProtectedFromScaleIn=True
        )


def test_new_instances_are_protected_where_the_group_says_so(world: World) -> None:
    grown(world, 1, NewInstancesProtectedFromScaleIn=True)
    assert world.shown()["Instances"][0]["ProtectedFromScaleIn"] is True


def test_terminating_one_with_decrement_ends_exactly_that_one(world: World) -> None:
    ids = grown(world, 3)
    answer = world.autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=ids[1], ShouldDecrementDesiredCapacity=True
    )
    assert answer["Activity"]["StatusCode"] == "InProgress"
    assert (
        "was taken out of service in response to a user request, shrinking the capacity from 3 to 2."
        in (answer["Activity"]["Cause"])
    )
    world.advance(60)
    assert sorted(world.ids()) == sorted([ids[0], ids[2]])
    assert world.shown()["DesiredCapacity"] == 2


def test_terminating_one_without_decrement_replaces_it(world: World) -> None:
    ids = grown(world, 2)
    world.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=ids[0], ShouldDecrementDesiredCapacity=False)
    world.advance(60)
    assert len(world.ids()) == 2
    assert ids[0] not in world.ids()


def test_terminating_below_the_minimum_is_refused(world: World) -> None:
    ids = grown(world, 2, MinSize=2)
    with pytest.raises(
        ClientError, match=r"Currently, desiredSize equals minSize \(2\)\. Terminating instance without"
    ):
        world.autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId=ids[0], ShouldDecrementDesiredCapacity=True
        )


def test_terminating_an_instance_of_no_group_is_refused(world: World) -> None:
    with pytest.raises(ClientError, match="Instance Id not found - No managed instance found for instance ID: i-0aa"):
        world.autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId="i-0aa", ShouldDecrementDesiredCapacity=True
        )


def test_several_instances_of_a_group_are_terminated_at_once_or_none(world: World) -> None:
    ids = grown(world, 4, MinSize=2)
    terminate = world.autoscaling.terminate_instance_in_auto_scaling_group
    with pytest.raises(ClientError, match="min size constraint"):
        terminate(AutoScalingGroupName="pool", InstanceIds=ids[:3], ShouldDecrementDesiredCapacity=True)
    assert set(world.states().values()) == {"InService"}
    answer = terminate(AutoScalingGroupName="pool", InstanceIds=ids[:2], ShouldDecrementDesiredCapacity=True)
    assert len(answer["Activities"]) == 2
    world.advance(60)
    assert world.ids() == ids[2:]


def test_an_instance_that_somebody_stopped_is_terminated_and_replaced(world: World) -> None:
    ids = grown(world, 1)
    world.ec2.stop_instances(InstanceIds=ids)
    world.advance(60)
    assert len(world.ids()) == 1
    assert ids[0] not in world.ids()


def test_a_replacement_never_takes_the_address_of_an_ended_instance(world: World) -> None:
    """Its node would have the old one's name while that one's pods are still bound to it."""
    ids = grown(world, 3)
    before = {world.node_of(instance_id) for instance_id in ids}
    world.want(0)
    world.advance(60)
    world.want(3)
    assert before.isdisjoint(world.node_of(instance_id) for instance_id in world.ids())


def test_terminating_members_no_longer_count_towards_desired(world: World) -> None:
    """Case 35: 23 instances shown, 20 of them wanted."""
    ids = grown(world, 3)
    world.autoscaling.put_lifecycle_hook(
        AutoScalingGroupName="pool",
        LifecycleHookName="drain",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
    )
    world.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=ids[0], ShouldDecrementDesiredCapacity=False)
    world.advance(BOOT_SECONDS)
    states = list(world.states().values())
    assert states.count("InService") == 3
    assert states.count("Terminating:Wait") == 1


def test_a_detached_instance_lives_on_outside_and_is_replaced(world: World) -> None:
    ids = grown(world, 2)
    answer = world.autoscaling.detach_instances(
        AutoScalingGroupName="pool", InstanceIds=ids[:1], ShouldDecrementDesiredCapacity=False
    )
    assert answer["Activities"][0]["Description"] == f"Detaching EC2 instance: {ids[0]}"
    world.advance(BOOT_SECONDS)
    assert len(world.ids()) == 2
    assert ids[0] not in world.ids()
    assert world.node_of(ids[0]) in world.nodes.nodes
    assert len(world.nodes.nodes) == 3


def test_the_node_of_a_detached_instance_goes_when_ec2_ends_it(world: World) -> None:
    ids = grown(world, 2)
    world.autoscaling.detach_instances(
        AutoScalingGroupName="pool", InstanceIds=ids[:1], ShouldDecrementDesiredCapacity=True
    )
    world.ec2.terminate_instances(InstanceIds=ids[:1])
    world.advance(60)
    assert world.node_of(ids[0]) not in world.nodes.nodes
    assert world.ids() == ids[1:]
    assert world.shown()["DesiredCapacity"] == 1


def test_detaching_refuses_what_is_not_in_service_not_a_member_too_many_or_below_the_minimum(world: World) -> None:
    ids = grown(world, 2, MinSize=2)

    def detach(instance_ids: list[str], *, decrement: bool = True) -> None:
        world.autoscaling.detach_instances(
            AutoScalingGroupName="pool", InstanceIds=instance_ids, ShouldDecrementDesiredCapacity=decrement
        )

    with pytest.raises(ClientError, match="min-size=2, max-size=20, and desired-size=2"):
        detach(ids[:1])
    with pytest.raises(ClientError, match="is not part of Auto Scaling group pool"):
        detach(["i-0aa"])
    with pytest.raises(ClientError, match="limit of 20"):
        detach([f"i-{number:017x}" for number in range(21)])
    world.want(3)
    pending = next(one for one, state in world.states().items() if state == "Pending")
    with pytest.raises(ClientError, match="is not in InService or Standby"):
        detach([pending], decrement=False)


def test_an_instance_that_ec2_ended_is_replaced(world: World) -> None:
    ids = grown(world, 2)
    world.ec2.terminate_instances(InstanceIds=ids[:1])
    world.advance(BOOT_SECONDS)
    assert len(world.ids()) == 2
    assert ids[0] not in world.ids()
    assert world.node_of(ids[0]) not in world.nodes.nodes
    causes = [one["Cause"] for one in world.activities()]
    assert any("an EC2 health check indicating it has been terminated or stopped" in cause for cause in causes)


def test_replace_unhealthy_waits_while_it_is_suspended(world: World) -> None:
    ids = grown(world, 1)
    world.autoscaling.suspend_processes(AutoScalingGroupName="pool", ScalingProcesses=["ReplaceUnhealthy"])
    world.autoscaling.set_instance_health(InstanceId=ids[0], HealthStatus="Unhealthy")
    world.advance(60)
    assert world.ids() == ids
    world.autoscaling.resume_processes(AutoScalingGroupName="pool")
    world.advance(60)
    assert ids[0] not in world.ids()


def test_a_suspended_terminate_keeps_every_instance(world: World) -> None:
    ids = grown(world, 2)
    world.autoscaling.suspend_processes(AutoScalingGroupName="pool", ScalingProcesses=["Terminate"])
    world.want(0)
    world.advance(60)
    assert world.ids() == ids


def test_zones_are_rebalanced_after_a_decrement_and_a_busy_node_dies(world: World) -> None:
    """Case 39: decrementing can end an instance elsewhere."""
    grown(world, 6, zones=ZONES)
    in_zone = {
        zone: [one["InstanceId"] for one in world.shown()["Instances"] if one["AvailabilityZone"] == zone]
        for zone in ZONES
    }
    busy = in_zone["us-west-2c"][0]
    world.nodes.busy = {world.node_of(busy): 9}
    for instance_id in in_zone["us-west-2a"]:
        world.autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId=instance_id, ShouldDecrementDesiredCapacity=True
        )
        world.advance(5)
    world.nodes.busy |= {world.node_of(one): 1 for one in in_zone["us-west-2b"]}
    world.advance(120)

    counts = sorted(one["AvailabilityZone"] for one in world.shown()["Instances"])
    assert len(counts) == 4
    assert counts.count("us-west-2a") == 1
    assert any("to aid in balancing the group's zones" in one["Cause"] for one in world.activities())


def test_zones_stay_as_they_are_while_az_rebalance_is_suspended_or_all_there_are_protected(world: World) -> None:
    grown(world, 6, zones=ZONES)
    world.autoscaling.suspend_processes(AutoScalingGroupName="pool", ScalingProcesses=["AZRebalance"])
    in_a = [one["InstanceId"] for one in world.shown()["Instances"] if one["AvailabilityZone"] == "us-west-2a"]
    world.autoscaling.detach_instances(
        AutoScalingGroupName="pool", InstanceIds=in_a, ShouldDecrementDesiredCapacity=True
    )
    before = world.ids()
    world.advance(120)
    assert world.ids() == before

    world.autoscaling.set_instance_protection(
        AutoScalingGroupName="pool", InstanceIds=before, ProtectedFromScaleIn=True
    )
    world.autoscaling.resume_processes(AutoScalingGroupName="pool")
    world.advance(120)
    assert world.ids() == before


def test_deleting_a_group_with_instances_needs_force(world: World) -> None:
    grown(world, 1)
    with pytest.raises(ClientError, match="ResourceInUse"):
        world.autoscaling.delete_auto_scaling_group(AutoScalingGroupName="pool")
    world.autoscaling.delete_auto_scaling_group(AutoScalingGroupName="pool", ForceDelete=True)
    world.advance(60)
    assert world.shown() == {}
    assert not world.nodes.nodes
    kept = world.autoscaling.describe_scaling_activities(AutoScalingGroupName="pool", IncludeDeletedGroups=True)
    assert kept["Activities"][0]["AutoScalingGroupState"] == "Deleted"


def test_capacity_rebalancing_launches_a_replacement_before_it_ends_the_one_at_risk(world: World) -> None:
    ids = grown(world, 1, CapacityRebalance=True)
    machine = world.fleet.machines[ids[0]]
    from localcloud.fleet.machines import recommend_rebalance

    with world.fleet.timers.lock:
        recommend_rebalance(world.fleet, machine)
    assert len(world.ids()) == 2
    world.advance(60)
    assert len(world.ids()) == 1
    assert ids[0] not in world.ids()
