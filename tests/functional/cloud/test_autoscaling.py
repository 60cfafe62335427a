"""Auto Scaling groups on moto, and the refusals that AWS writes and moto does not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import pytest
from botocore.stub import Stubber

from firstbell.cloud.autoscaling import AutoScaling, LifecycleAction
from firstbell.cloud.refusals import Refused
from firstbell.errors import AccessDenied, Conflict, FirstbellError, NotFound, RetryLater
from tests.functional.cloud.conftest import REGION

if TYPE_CHECKING:
    from firstbell.cloud.session import Clients

ZONE = f"{REGION}a"
ACTION = LifecycleAction("notebooks", "drain", "i-0aa")


@pytest.fixture
def autoscaling(clients: Clients) -> AutoScaling:
    return AutoScaling(clients)


def _template(clients: Clients, instance_type: Literal["m5.large", "c5.large"] = "m5.large") -> str:
    answer = clients.ec2.create_launch_template(
        LaunchTemplateName="notebooks", LaunchTemplateData={"InstanceType": instance_type, "ImageId": "ami-12345678"}
    )
    return answer["LaunchTemplate"]["LaunchTemplateId"]


def _group(clients: Clients, name: str = "notebooks", **said: Any) -> None:
    ordinary: dict[str, Any] = {"MinSize": 0, "MaxSize": 30, "DesiredCapacity": 0, "AvailabilityZones": [ZONE]}
    if "MixedInstancesPolicy" not in said:
        ordinary["LaunchTemplate"] = {"LaunchTemplateName": "notebooks", "Version": "$Latest"}
    clients.autoscaling.create_auto_scaling_group(AutoScalingGroupName=name, **(ordinary | said))


def _mixed(*overrides: Any) -> dict[str, Any]:
    template = {"LaunchTemplateName": "notebooks", "Version": "$Default"}
    return {"LaunchTemplate": {"LaunchTemplateSpecification": template, "Overrides": list(overrides)}}


# reading


def test_a_group_is_read_whole(clients: Clients, autoscaling: AutoScaling) -> None:
    _template(clients)
    tag = {"Key": "team", "Value": "hub", "PropagateAtLaunch": True}
    _group(clients, DesiredCapacity=3, MinSize=1, CapacityRebalance=True, Tags=[tag])
    clients.autoscaling.suspend_processes(AutoScalingGroupName="notebooks", ScalingProcesses=["AZRebalance"])
    group = autoscaling.describe(["notebooks", "absent"])["notebooks"]
    assert (group.min_size, group.desired, group.max_size) == (1, 3, 30)
    assert [(m.lifecycle, m.instance_type, m.zone, m.weight) for m in group.members] == [
        ("InService", "m5.large", ZONE, 1)
    ] * 3
    assert (group.suspended, group.zones, group.tags["team"]) == (frozenset({"AZRebalance"}), (ZONE,), "hub")
    assert (group.instance_types, dict(group.weights)) == (("m5.large",), {})


def test_a_group_that_does_not_exist_is_absent(autoscaling: AutoScaling) -> None:
    assert autoscaling.describe(["absent"]) == {}


def test_no_names_ask_for_no_groups(clients: Clients, autoscaling: AutoScaling) -> None:
    """An empty list of names would mean every group of the account to AWS."""
    _template(clients)
    _group(clients)
    assert autoscaling.describe([]) == {}


def test_a_mixed_policy_says_types_and_weights_in_its_order(clients: Clients, autoscaling: AutoScaling) -> None:
    """Case 40."""
    _template(clients)
    overrides = (
        {"InstanceType": "m5.xlarge", "WeightedCapacity": "2"},
        {"InstanceType": "m5.large", "WeightedCapacity": "1"},
    )
    _group(clients, MixedInstancesPolicy=_mixed(*overrides))
    group = autoscaling.describe(["notebooks"])["notebooks"]
    assert group.instance_types == ("m5.xlarge", "m5.large")
    assert dict(group.weights) == {"m5.xlarge": 2, "m5.large": 1}


def test_a_policy_without_weights_has_none(clients: Clients, autoscaling: AutoScaling) -> None:
    """Case 40: then a unit is an instance."""
    _template(clients)
    _group(clients, MixedInstancesPolicy=_mixed({"InstanceType": "m5.xlarge"}, {"InstanceType": "m5a.xlarge"}))
    group = autoscaling.describe(["notebooks"])["notebooks"]
    assert (group.instance_types, dict(group.weights)) == (("m5.xlarge", "m5a.xlarge"), {})


def test_a_policy_without_overrides_has_its_templates_type(clients: Clients, autoscaling: AutoScaling) -> None:
    _template(clients, "c5.large")
    _group(clients, MixedInstancesPolicy=_mixed())
    assert autoscaling.describe(["notebooks"])["notebooks"].instance_types == ("c5.large",)


def test_a_moving_version_of_a_template_is_read_again_after_a_while(clients: Clients) -> None:
    now = 0.0
    autoscaling = AutoScaling(clients, lambda: now)
    template = _template(clients, "m5.large")
    _group(clients)
    assert autoscaling.describe(["notebooks"])["notebooks"].instance_types == ("m5.large",)
    clients.ec2.create_launch_template_version(
        LaunchTemplateId=template, LaunchTemplateData={"InstanceType": "m5.2xlarge", "ImageId": "ami-12345678"}
    )
    assert autoscaling.describe(["notebooks"])["notebooks"].instance_types == ("m5.large",)
    now = 301.0
    assert autoscaling.describe(["notebooks"])["notebooks"].instance_types == ("m5.2xlarge",)


def test_activities_come_newest_first_and_not_from_before(clients: Clients, autoscaling: AutoScaling) -> None:
    def activity(number: int, minute: int) -> dict[str, Any]:
        return {
            "ActivityId": f"a{number}",
            "AutoScalingGroupName": "notebooks",
            "Cause": "a user request",
            "StartTime": datetime(2026, 12, 1, 9, minute, tzinfo=UTC),
            "StatusCode": "Failed",
            "StatusMessage": "We currently do not have sufficient m5.large capacity",
        }

    nine = 1_796_115_600.0
    with Stubber(clients.autoscaling) as stubber:
        first = {"Activities": [activity(3, 7), activity(2, 5)], "NextToken": "more"}
        stubber.add_response("describe_scaling_activities", first)
        stubber.add_response("describe_scaling_activities", {"Activities": [activity(1, 1)], "NextToken": "older"})
        found = autoscaling.activities("notebooks", since=nine + 120)
    assert [(a.activity_id, a.started_at - nine, a.ended_at) for a in found] == [("a3", 420, 0), ("a2", 300, 0)]
    assert found[0].status_message.startswith("We currently")


@pytest.mark.parametrize(
    ("status", "running"), [("InProgress", True), ("Baking", True), ("Successful", False), ("Cancelled", False)]
)
def test_an_instance_refresh_is_noticed_while_it_runs(
    status: str, running: bool, clients: Clients, autoscaling: AutoScaling
) -> None:
    with Stubber(clients.autoscaling) as stubber:
        stubber.add_response("describe_instance_refreshes", {"InstanceRefreshes": [{"Status": status}]})
        assert autoscaling.instance_refresh_running("notebooks") is running


# writing


def test_desired_and_minimum_are_set(clients: Clients, autoscaling: AutoScaling) -> None:
    _template(clients)
    _group(clients)
    autoscaling.set_desired("notebooks", 4)
    autoscaling.update_min_size("notebooks", 2)
    group = autoscaling.describe(["notebooks"])["notebooks"]
    assert (group.desired, group.min_size, len(group.members)) == (4, 2, 4)


def test_exactly_the_chosen_member_is_terminated(clients: Clients, autoscaling: AutoScaling) -> None:
    """Case 36."""
    _template(clients)
    _group(clients, DesiredCapacity=3)
    chosen, *others = (m.instance_id for m in autoscaling.describe(["notebooks"])["notebooks"].members)
    autoscaling.terminate_with_decrement(chosen)
    group = autoscaling.describe(["notebooks"])["notebooks"]
    assert group.desired == 2
    assert [m.instance_id for m in group.members] == others


def test_members_are_detached_twenty_at_a_time(clients: Clients, autoscaling: AutoScaling) -> None:
    _template(clients)
    _group(clients, DesiredCapacity=25)
    members = [m.instance_id for m in autoscaling.describe(["notebooks"])["notebooks"].members]
    sizes: list[int] = []
    clients.autoscaling.meta.events.register(
        "provide-client-params.auto-scaling.DetachInstances",
        lambda params, **_: sizes.append(len(params["InstanceIds"])),
    )
    autoscaling.detach("notebooks", members[:23], decrement=True)
    assert sizes == [20, 3]
    group = autoscaling.describe(["notebooks"])["notebooks"]
    assert (group.desired, len(group.members)) == (2, 2)


def test_protection_is_set_and_lifted(clients: Clients, autoscaling: AutoScaling) -> None:
    _template(clients)
    _group(clients, DesiredCapacity=2)
    first, second = (m.instance_id for m in autoscaling.describe(["notebooks"])["notebooks"].members)
    autoscaling.set_protection("notebooks", [first, second], protected=True)
    autoscaling.set_protection("notebooks", [first], protected=False)
    group = autoscaling.describe(["notebooks"])["notebooks"]
    assert {m.instance_id: m.protected_from_scale_in for m in group.members} == {first: False, second: True}


def test_hooks_are_read_with_their_timeouts(clients: Clients, autoscaling: AutoScaling) -> None:
    _template(clients)
    _group(clients)
    clients.autoscaling.put_lifecycle_hook(
        AutoScalingGroupName="notebooks",
        LifecycleHookName="drain",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        HeartbeatTimeout=300,
        DefaultResult="CONTINUE",
    )
    (hook,) = autoscaling.lifecycle_hooks("notebooks")
    assert (hook.name, hook.transition, hook.heartbeat_timeout_seconds, hook.default_result) == (
        "drain",
        "autoscaling:EC2_INSTANCE_TERMINATING",
        300,
        "CONTINUE",
    )


# refusals, in AWS's words


def _refusing(clients: Clients, method: str, code: str, message: str, http: int = 400) -> Stubber:
    stubber = Stubber(clients.autoscaling)
    stubber.add_client_error(method, code, message, http)
    return stubber


SET, TERMINATE, DETACH = "set_desired_capacity", "terminate_instance_in_auto_scaling_group", "detach_instances"
CALLS: dict[str, Callable[[AutoScaling], object]] = {
    SET: lambda autoscaling: autoscaling.set_desired("notebooks", 31),
    TERMINATE: lambda autoscaling: autoscaling.terminate_with_decrement("i-0aa"),
    DETACH: lambda autoscaling: autoscaling.detach("notebooks", ["i-0aa"], decrement=True),
    "describe_scaling_activities": lambda autoscaling: autoscaling.activities("notebooks", 0),
}
REFUSALS = [
    (SET, "ScalingActivityInProgress", "Scaling activity is in progress", RetryLater),
    (SET, "ResourceContention", "You already have a pending update to an Auto Scaling resource", RetryLater),
    (SET, "Throttling", "Rate exceeded", RetryLater),
    (SET, "AccessDenied", "User is not authorized to perform autoscaling:SetDesiredCapacity", AccessDenied),
    # case 33
    (
        SET,
        "ValidationError",
        "New SetDesiredCapacity value 31 is above max value 30 for the AutoScalingGroup.",
        Conflict,
    ),
    (SET, "ValidationError", "AutoScalingGroup name not found - AutoScalingGroup: notebooks not found", NotFound),
    (
        TERMINATE,
        "ValidationError",
        "Currently, desiredSize equals minSize (4). Terminating instance without replacement will violate group's min "
        "size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.",
        Conflict,
    ),
    (
        TERMINATE,
        "ValidationError",
        "Instance Id not found - No managed instance found for instance ID: i-0aa",
        NotFound,
    ),
    (DETACH, "ValidationError", "The instance i-0aa is not in InService or Standby.", Conflict),
    (DETACH, "ValidationError", "The instance i-0aa is not part of Auto Scaling group notebooks.", Conflict),
    (
        DETACH,
        "ValidationError",
        "AutoScalingGroup notebooks has min-size=1, max-size=50, and desired-size=1. To detach 1 instance, please "
        "update the AutoScalingGroup sizes appropriately.",
        Conflict,
    ),
    ("describe_scaling_activities", "ValidationError", "Value at 'nextToken' failed to satisfy constraint", Refused),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: f"{refusal[0]}: {refusal[2]:.40}")
def test_each_refusal_is_named(
    refusal: tuple[str, str, str, type[FirstbellError]], clients: Clients, autoscaling: AutoScaling
) -> None:
    method, code, message, expected = refusal
    with _refusing(clients, method, code, message), pytest.raises(expected) as caught:
        CALLS[method](autoscaling)
    assert type(caught.value) is expected
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "message",
    [
        "No active Lifecycle Action found with token f66c3d47-e602-4af0-8edd-d4e4d2fe4620",
        "No active Lifecycle Action found with instance ID i-0aa",
    ],
)
def test_an_action_that_is_over_is_completed(message: str, clients: Clients, autoscaling: AutoScaling) -> None:
    """Case 28: success, to be acknowledged."""
    with _refusing(clients, "complete_lifecycle_action", "ValidationError", message):
        assert autoscaling.complete_lifecycle_action(ACTION) is False
    with _refusing(clients, "record_lifecycle_action_heartbeat", "ValidationError", message):
        assert autoscaling.heartbeat(ACTION) is False


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        pytest.param("Throttling", "Rate exceeded", RetryLater, id="a retry"),
        pytest.param("ValidationError", "Lifecycle hook drain does not exist", Refused, id="an alarm"),
    ],
)
def test_any_other_refusal_of_a_completion_is_not_success(
    code: str, message: str, expected: type[FirstbellError], clients: Clients, autoscaling: AutoScaling
) -> None:
    """Case 28."""
    with _refusing(clients, "complete_lifecycle_action", code, message), pytest.raises(expected):
        autoscaling.complete_lifecycle_action(ACTION)


def test_a_completion_names_the_action_by_group_hook_and_instance(clients: Clients, autoscaling: AutoScaling) -> None:
    action = {"AutoScalingGroupName": "notebooks", "LifecycleHookName": "drain", "InstanceId": "i-0aa"}
    with Stubber(clients.autoscaling) as stubber:
        stubber.add_response("complete_lifecycle_action", {}, action | {"LifecycleActionResult": "CONTINUE"})
        stubber.add_response("record_lifecycle_action_heartbeat", {}, action)
        assert autoscaling.complete_lifecycle_action(ACTION) is True
        assert autoscaling.heartbeat(ACTION) is True
