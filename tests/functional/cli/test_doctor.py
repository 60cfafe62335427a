"""`firstbell doctor` on moto: a healthy deployment, then one thing after the other that is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cli.doctor.access import RBAC, verbs_by_group
from cli.doctor.asking import Aws
from firstbell.cloud.refusals import Refused
from firstbell.errors import AccessDenied, ClusterUnreachable
from tests.fakes.school import School, pool
from tests.functional.cli.desk import WRITES, Desk

REGION = "us-west-2"
STACK = "firstbell-hub"
ASK = Aws.ask
TAG = "kubernetes.io/cluster/hub"


@dataclass
class Hospital:
    """A deployment that is well; what a test breaks, doctor has to find."""

    desk: Desk
    mode: str = "API"
    groups: list[str] | None = None
    """Kubernetes groups of the tick's access entry; None = it has no entry."""

    def client(self, service: str) -> Any:
        make: Any = boto3.Session().client
        return make(service, region_name=REGION)

    def ask(self, aws: Aws, service: str, operation: str, **arguments: Any) -> Any:
        """What moto does not keep: authentication modes, access entries, roles that let in nobody but Lambda."""
        match operation:
            case "describe_access_entry" if self.groups is None:
                raise Refused("eks:DescribeAccessEntry", "ResourceNotFoundException", "no such entry")
            case "describe_access_entry":
                return {"accessEntry": {"kubernetesGroups": self.groups}}
            case "assume_role":
                raise AccessDenied("sts:AssumeRole: AccessDenied")
        answer = ASK(aws, service, operation, **arguments)
        if operation == "describe_cluster":
            answer["cluster"]["accessConfig"] = {"authenticationMode": self.mode}
        return answer

    def findings(self, *, code: int | None = None) -> dict[tuple[str, str], dict[str, Any]]:
        """(check, subject) -> finding."""
        ran = self.desk.run("doctor", "--json")
        assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
        document = json.loads(ran.stdout)
        found = {(f["check"], f["subject"]): f for f in document["findings"]}
        wrong = any(f["severity"] != "unchecked" for f in document["findings"])
        assert (document["wrong"], ran.exit_code) == (wrong, int(wrong))
        assert all(f["remedy"] for f in document["findings"])
        assert not self.desk.calls() & WRITES
        return found

    def only(self) -> dict[str, Any]:
        (finding,) = self.findings().values()
        return finding


def template() -> dict[str, Any]:
    role = {"Version": "2012-10-17", "Statement": []}
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "firstbell-hub-interruption-dead-letters"}}
    work = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "firstbell-hub-interruption"}}
    return {
        "Resources": {
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "tick", "AssumeRolePolicyDocument": role}},
            "DeadLetters": queue,
            "Queue": work,
            "Bus": {"Type": "AWS::Events::EventBus", "Properties": {"Name": "firstbell-hub"}},
            "Rule": {
                "Type": "AWS::Events::Rule",
                "Properties": {
                    "Name": "spot",
                    "EventPattern": {"source": ["aws.ec2"]},
                    "Targets": [{"Id": "queue", "Arn": {"Fn::GetAtt": ["Queue", "Arn"]}}],
                },
            },
        }
    }


@pytest.fixture(scope="module")
def one_session() -> Any:
    """Loading a service's model takes longer than most tests."""
    return boto3.Session("made-up", "secret", region_name=REGION)


@pytest.fixture
def hospital(monkeypatch: pytest.MonkeyPatch, one_session: Any) -> Iterator[Hospital]:
    for name, value in {"ACCESS_KEY_ID": "made-up", "SECRET_ACCESS_KEY": "x", "DEFAULT_REGION": REGION}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    school = School(pools=(pool(stateful=True),))
    monkeypatch.setattr(boto3, "Session", lambda **_: one_session)
    with mock_aws():
        found = Hospital(Desk(school))

        def ask(aws: Aws, service: str, operation: str, **arguments: Any) -> Any:
            return found.ask(aws, service, operation, **arguments)

        monkeypatch.setattr(Aws, "ask", ask)
        build(found)
        school.now = datetime.now(UTC).timestamp()
        yield found


def build(hospital: Hospital) -> None:
    hospital.client("cloudformation").create_stack(StackName=STACK, TemplateBody=json.dumps(template()))
    hospital.client("eks").create_cluster(
        name="hub",
        roleArn="arn:aws:iam::123456789012:role/eks",
        resourcesVpcConfig={"subnetIds": []},
        accessConfig={"authenticationMode": "API"},
    )
    count_run(hospital, "Invocations")
    make_group(hospital)


def count_run(hospital: Hospital, metric: str) -> None:
    dimensions = [{"Name": "FunctionName", "Value": "firstbell-hub-tick"}]
    data = [{"MetricName": metric, "Dimensions": dimensions, "Value": 1}]
    hospital.client("cloudwatch").put_metric_data(Namespace="AWS/Lambda", MetricData=data)


def make_group(hospital: Hospital, **settings: Any) -> None:
    ec2, autoscaling = hospital.client("ec2"), hospital.client("autoscaling")
    ec2.create_launch_template(
        LaunchTemplateName="notebook", LaunchTemplateData={"ImageId": "ami-1", "InstanceType": "m5.large"}
    )
    autoscaling.create_auto_scaling_group(
        **{
            "AutoScalingGroupName": "asg-notebook",
            "LaunchTemplate": {"LaunchTemplateName": "notebook", "Version": "$Latest"},
            "MinSize": 0,
            "MaxSize": 4,
            "AvailabilityZones": ["us-west-2a"],
            "Tags": [tag(TAG, "owned")],
        }
        | settings
    )
    autoscaling.put_lifecycle_hook(
        AutoScalingGroupName="asg-notebook",
        LifecycleHookName="firstbell-drain",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
    )


def tag(key: str, value: str) -> dict[str, Any]:
    return {
        "ResourceId": "asg-notebook",
        "ResourceType": "auto-scaling-group",
        "Key": key,
        "Value": value,
        "PropagateAtLaunch": True,
    }


def test_a_healthy_deployment_has_no_finding_and_ends_with_0(hospital: Hospital) -> None:
    assert hospital.findings() == {}
    assert "nothing wrong" in hospital.desk.run("doctor").stdout


def test_a_stack_that_is_not_there_is_one_finding_and_not_twenty(hospital: Hospital) -> None:
    hospital.client("cloudformation").delete_stack(StackName=STACK)
    finding = hospital.only()
    assert (finding["check"], finding["severity"], finding["problem"]) == ("stack", "error", "does not exist")
    assert "make deploy" in finding["remedy"]


def test_a_disabled_rule_is_found_with_the_command_that_enables_it(hospital: Hospital) -> None:
    hospital.client("events").disable_rule(Name="spot")
    finding = hospital.only()
    assert (finding["check"], finding["subject"]) == ("rule", "spot")
    assert finding["remedy"] == "aws events enable-rule --name spot"


def test_a_rule_that_somebody_deleted_is_found(hospital: Hospital) -> None:
    events = hospital.client("events")
    events.remove_targets(Rule="spot", Ids=["queue"])
    assert "no target" in hospital.only()["problem"]
    events.delete_rule(Name="spot")
    assert hospital.only()["problem"] == "does not exist"


def test_dead_letters_are_counted_and_messages_at_work_are_not(hospital: Hospital) -> None:
    sqs = hospital.client("sqs")
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName="firstbell-hub-interruption")["QueueUrl"], MessageBody="x")
    assert hospital.findings() == {}
    dead = sqs.get_queue_url(QueueName="firstbell-hub-interruption-dead-letters")["QueueUrl"]
    sqs.send_message(QueueUrl=dead, MessageBody="x")
    assert hospital.only()["problem"] == "holds 1 that nobody could work on"


def test_a_tick_that_does_not_come_to_its_end_is_found(hospital: Hospital) -> None:
    count_run(hospital, "Errors")
    assert hospital.only()["check"] == "tick"
    hospital.desk.school.now += 600
    assert hospital.only()["check"] == "tick"


def test_a_cluster_that_knows_no_access_entries_is_found(hospital: Hospital) -> None:
    hospital.mode = "CONFIG_MAP"
    finding = hospital.only()
    assert "CONFIG_MAP" in finding["problem"]
    assert "authenticationMode=API_AND_CONFIG_MAP" in finding["remedy"]


def with_tick(hospital: Hospital) -> None:
    """The tick's function as the stack makes it."""
    resources = template()
    resources["Resources"]["Tick"] = {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "FunctionName": "firstbell-hub-tick",
            "Role": {"Fn::GetAtt": ["Role", "Arn"]},
            "Runtime": "python3.13",
            "Handler": "index.handler",
            "Code": {"ZipFile": "def handler(event, context): pass"},
            "Environment": {"Variables": {"POWERTOOLS_SERVICE_NAME": "tick"}},
        },
    }
    hospital.client("cloudformation").update_stack(StackName=STACK, TemplateBody=json.dumps(resources))


def test_a_function_without_an_access_entry_is_found(hospital: Hospital) -> None:
    with_tick(hospital)
    finding = hospital.only()
    assert (finding["check"], finding["subject"]) == ("access", "firstbell-hub-tick")
    hospital.groups = ["system:masters"]
    assert "not firstbell:tick" in hospital.only()["problem"]


def test_verbs_that_rbac_does_not_grant_are_named_with_the_manifest(hospital: Hospital) -> None:
    with_tick(hospital)
    hospital.groups = ["firstbell:tick"]
    assert hospital.findings() == {}
    asked = {(spec["groups"][0], spec["resourceAttributes"]["verb"]) for spec in hospital.desk.api.asked}
    assert {("firstbell:tick", "list"), ("firstbell:tick", "patch")} <= asked
    hospital.desk.api.denied = {("patch", "nodes"), ("list", "daemonsets")}
    finding = hospital.only()
    assert finding["problem"] == "may not patch nodes, list daemonsets.apps"
    assert finding["remedy"] == "kubectl apply -f infra/rbac.yaml"


def test_every_function_s_group_has_its_verbs_in_the_manifest() -> None:
    granted = verbs_by_group(RBAC)
    assert {"firstbell:prescale", "firstbell:tick", "firstbell:interruption"} <= granted.keys()
    assert "create pods/eviction" in {str(verb) for verb in granted["firstbell:interruption"]}


def test_what_cannot_be_read_is_said_and_is_nothing_wrong(hospital: Hospital) -> None:
    hospital.desk.school.faults.fail("ledger.read", ClusterUnreachable("dynamodb:Query: throttled"))
    finding = hospital.only()
    assert (finding["severity"], finding["problem"]) == ("unchecked", "dynamodb:Query: throttled")


def test_a_paused_firstbell_is_found(hospital: Hospital) -> None:
    hospital.desk.school.ledger.paused = True
    assert hospital.only()["remedy"] == "firstbell resume"


def test_case_39_a_group_that_fights_us_is_found_setting_by_setting(hospital: Hospital) -> None:
    autoscaling = hospital.client("autoscaling")
    autoscaling.delete_auto_scaling_group(AutoScalingGroupName="asg-notebook", ForceDelete=True)
    assert hospital.only()["problem"] == "does not exist"
    hospital.client("ec2").delete_launch_template(LaunchTemplateName="notebook")
    make_group(hospital, AvailabilityZones=["us-west-2a", "us-west-2b"], CapacityRebalance=True)
    autoscaling.put_scaling_policy(
        AutoScalingGroupName="asg-notebook",
        PolicyName="shrink",
        PolicyType="SimpleScaling",
        AdjustmentType="ChangeInCapacity",
        ScalingAdjustment=-1,
    )
    autoscaling.put_scheduled_update_group_action(
        AutoScalingGroupName="asg-notebook", ScheduledActionName="night", Recurrence="0 20 * * *", DesiredCapacity=0
    )
    autoscaling.suspend_processes(AutoScalingGroupName="asg-notebook", ScalingProcesses=["Launch"])
    ran = hospital.desk.run("doctor")
    assert ran.exit_code == 1
    for words in ("its Launch process is suspended", "AZRebalance", "the policy shrink scales in", "action night"):
        assert words in ran.stdout
