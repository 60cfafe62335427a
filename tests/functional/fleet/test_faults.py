"""What goes wrong on request. Rows "Failures" and "Throttling" of localcloud/README.md."""

from __future__ import annotations

import json
from typing import Any

import pytest
import urllib3
from botocore.exceptions import ClientError

from localcloud.fleet.journal import CALLS, EVENTS
from tests.functional.fleet.conftest import BOOT_SECONDS, ZONES, World


def knock(world: World, method: str, wish: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    with urllib3.PoolManager() as http:
        answer = http.request(method, f"{world.url}/_localcloud/fleet/{wish}", body=json.dumps(body or {}))
        world.advance(0)
        return answer.status, answer.json()


def test_insufficient_capacity_fails_in_aws_s_words_and_is_tried_again(world: World) -> None:
    """Case 39: desired raised, nothing launches, the activity says why."""
    world.group(zones=ZONES)
    knock(world, "POST", "launch-failures", {"group": "pool", "kind": "InsufficientInstanceCapacity", "count": 2})
    world.want(1)
    assert world.ids() == []
    failed = world.activities()[0]
    assert failed["StatusCode"] == "Failed"
    assert failed["StatusMessage"].startswith(
        "We currently do not have sufficient m5.xlarge capacity in the Availability Zone you requested (us-west-2a)."
    )
    assert failed["StatusMessage"].endswith("choosing us-west-2b, us-west-2c. Launching EC2 instance failed.")
    (event,) = world.heard.details("EC2 Instance Launch Unsuccessful")
    assert event["StatusCode"] == "Failed"
    assert event["StatusMessage"] == failed["StatusMessage"]

    world.advance(3 * BOOT_SECONDS)
    assert len(world.ids()) == 1
    assert [one["StatusCode"] for one in world.activities()].count("Failed") == 2


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            "UnfulfillableCapacity",
            "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity",
        ),
        (
            "SpotMaxPriceTooLow",
            "Could not launch Spot Instances. SpotMaxPriceTooLow - Your Spot request price of 0.015",
        ),
        (
            "MaxSpotInstanceCountExceeded",
            "MaxSpotInstanceCountExceeded - Max spot instance count exceeded. Launching EC2",
        ),
        ("VcpuLimitExceeded", "VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit"),
    ],
)
def test_a_mixed_group_names_market_and_error_code(world: World, kind: str, words: str) -> None:
    specification = {"LaunchTemplateId": world.template("spot"), "Version": "$Latest"}
    policy = {
        "LaunchTemplate": {"LaunchTemplateSpecification": specification, "Overrides": [{"InstanceType": "m5.xlarge"}]},
        "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0},
    }
    world.group(MixedInstancesPolicy=policy)
    knock(world, "POST", "launch-failures", {"group": "pool", "kind": kind})
    world.want(1)
    assert words in world.activities()[0]["StatusMessage"]
    world.advance(600)
    assert world.ids() == []
    knock(world, "DELETE", "launch-failures", {"group": "pool"})
    assert len(world.ids()) == 1


def test_a_fault_can_hit_one_type_only(world: World) -> None:
    world.group()
    body = {"group": "pool", "kind": "InsufficientInstanceCapacity", "instance_types": ["m5.2xlarge"]}
    knock(world, "POST", "launch-failures", body)
    world.want(1)
    assert len(world.ids()) == 1


def test_an_instance_can_fail_to_join(world: World) -> None:
    world.group()
    knock(world, "POST", "unjoining", {"group": "pool", "count": 1})
    world.want(2)
    world.advance(20 * BOOT_SECONDS)
    assert sorted(world.states().values()) == ["InService", "InService"]
    assert len(world.nodes.nodes) == 1


def test_calls_are_throttled_as_often_as_asked(world: World) -> None:
    world.group()
    knock(world, "POST", "throttle", {"action": "SetDesiredCapacity", "count": 2})
    for _ in range(2):
        with pytest.raises(ClientError, match=r"\(Throttling\).*Rate exceeded"):
            world.want(1)
    world.want(1)
    knock(world, "POST", "throttle", {"action": "DescribeInstances", "count": 1})
    with pytest.raises(ClientError, match="RequestLimitExceeded"):
        world.ec2.describe_instances()
    world.ec2.describe_instances()


def test_a_spot_interruption_warns_then_ends_the_instance_and_the_group_replaces_it(world: World) -> None:
    world.group(desired=1)
    world.advance(BOOT_SECONDS)
    (instance_id,) = world.ids()
    knock(world, "POST", "spot-interruption", {"instance_id": instance_id})
    (warning,) = world.heard.details("EC2 Spot Instance Interruption Warning")
    assert warning == {"instance-id": instance_id, "instance-action": "terminate"}
    world.advance(119)
    assert world.states()[instance_id] == "InService"
    world.advance(1 + BOOT_SECONDS)
    assert instance_id not in world.ids()
    assert len(world.ids()) == 1
    states = [
        d["state"]
        for d in world.heard.details("EC2 Instance State-change Notification")
        if d["instance-id"] == instance_id
    ]
    assert states == ["pending", "running", "shutting-down", "terminated"]


def test_a_rebalance_recommendation_is_only_said_where_the_group_does_not_rebalance_capacity(world: World) -> None:
    """Case 7: the signal is elevated risk, no termination follows."""
    world.group(desired=1)
    world.advance(BOOT_SECONDS)
    (instance_id,) = world.ids()
    knock(world, "POST", "rebalance-recommendation", {"instance_id": instance_id})
    assert world.heard.details("EC2 Instance Rebalance Recommendation") == [{"instance-id": instance_id}]
    world.advance(600)
    assert world.ids() == [instance_id]


def test_the_door_refuses_what_it_does_not_know(world: World) -> None:
    assert knock(world, "GET", "health") == (200, {"status": "ok"})
    assert knock(world, "POST", "nothing")[0] == 404
    assert knock(world, "POST", "spot-interruption", {"instance_id": "i-0aa"})[0] == 400


def test_every_call_is_in_the_journal_with_its_caller_and_every_step_of_an_instance(world: World) -> None:
    world.group()
    world.want(1)
    with pytest.raises(ClientError):
        world.want(99)
    world.advance(BOOT_SECONDS)
    world.want(0)
    world.advance(60)

    calls = [json.loads(line) for line in (world.folder / CALLS).read_text().splitlines()]
    set_calls = [call for call in calls if call["action"] == "SetDesiredCapacity"]
    assert [(call["parameters"]["DesiredCapacity"], call["error"]) for call in set_calls] == [
        (1, None),
        (99, "ValidationError"),
        (0, None),
    ]
    assert {call["access_key"] for call in calls} == {"caller"}
    steps = [json.loads(line)["event"] for line in (world.folder / EVENTS).read_text().splitlines()]
    assert steps == [
        "launched",
        "running",
        "in-service",
        "joined",
        "terminating",
        "shutting-down",
        "terminated",
        "left",
    ]


def test_boot_times_can_be_changed_for_one_group(world: World) -> None:
    world.group()
    knock(world, "POST", "boot-seconds", {"group": "pool", "seconds": 1})
    world.want(1)
    world.advance(1)
    assert len(world.nodes.nodes) == 1
