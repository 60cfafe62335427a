"""Instance types, bus, EKS and load balancers on moto."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.stub import Stubber

from firstbell.cloud.bus import BYTES_PER_CALL, Bus, OutcomeEvent
from firstbell.cloud.eks import Eks
from firstbell.cloud.instance_types import InstanceTypes
from firstbell.cloud.load_balancers import LoadBalancers
from firstbell.cloud.refusals import Refused
from firstbell.cloud.session import Clients
from firstbell.errors import NotFound, RetryLater
from tests.functional.cloud.conftest import REGION

# instance types


def test_known_types_are_described_once_and_unknown_ones_are_said_to_be(clients: Clients) -> None:
    """Case 47: m9x.large is in no table, and t4g.small is a Graviton."""
    calls: list[dict[str, Any]] = []
    clients.ec2.meta.events.register(
        "provide-client-params.ec2.DescribeInstanceTypes", lambda params, **_: calls.append(params)
    )
    types = InstanceTypes(clients)
    answer = types.describe(["m5.large", "t4g.small", "m9x.large", "5.large"])
    assert answer.facts.keys() == {"m5.large", "t4g.small"}
    assert answer.unknown == {"m9x.large", "5.large"}
    assert (answer.facts["m5.large"].vcpus, answer.facts["m5.large"].memory_mib) == (2, 8192)
    types.describe(["m5.large", "t4g.small"])
    assert len(calls) == 1


# the bus


class _BusOfAws:
    """PutEvents as AWS answers it: entries whose detail says so fail, each as often as it says."""

    def __init__(self, clients: Clients) -> None:
        self.calls: list[list[dict[str, Any]]] = []
        self.failing: dict[int, tuple[int, str]] = {}
        """Number in the detail -> (how often it fails, with which code)."""
        self.slept: list[float] = []
        clients.events.meta.events.register("before-call.eventbridge.PutEvents", self._answer)
        self.bus = Bus(clients, "firstbell-hub", self.slept.append)

    def taken(self) -> list[int]:
        return [number for call in self.calls for number in self._numbers(call) if number >= 0]

    def _answer(self, params: dict[str, Any], **_: Any) -> Any:
        entries = json.loads(params["body"])["Entries"]
        self.calls.append(entries)
        results = [self._result(number) for number in self._numbers(entries)]
        response = type("Response", (), {"status_code": 200})()
        return response, {"Entries": results, "FailedEntryCount": sum("ErrorCode" in result for result in results)}

    def _result(self, number: int) -> dict[str, str]:
        times, code = self.failing.get(number, (0, ""))
        if not times:
            return {"EventId": str(number)}
        self.failing[number] = (times - 1, code)
        return {"ErrorCode": code, "ErrorMessage": "m"}

    @staticmethod
    def _numbers(entries: list[dict[str, Any]]) -> list[int]:
        return [json.loads(entry["Detail"])["number"] for entry in entries]


@pytest.fixture
def aws(clients: Clients) -> _BusOfAws:
    return _BusOfAws(Clients())


def _events(count: int, padding: str = "") -> list[OutcomeEvent]:
    return [OutcomeEvent("Capacity Ready", {"number": number, "padding": padding}) for number in range(count)]


def test_events_go_out_ten_at_a_time_in_order_and_from_our_source(aws: _BusOfAws) -> None:
    aws.bus.publish(_events(23))
    assert [len(call) for call in aws.calls] == [10, 10, 3]
    assert aws.taken() == list(range(23))
    entry = aws.calls[0][0]
    assert (entry["EventBusName"], entry["Source"], entry["DetailType"]) == (
        "firstbell-hub",
        "firstbell",
        "Capacity Ready",
    )


def test_no_events_make_no_call(aws: _BusOfAws) -> None:
    aws.bus.publish([])
    assert aws.calls == []


def test_a_call_stays_below_awss_size(aws: _BusOfAws) -> None:
    aws.bus.publish(_events(5, "x" * 100_000))
    assert [len(call) for call in aws.calls] == [2, 2, 1]
    sizes = [sum(len(e["Detail"]) + len(e["DetailType"]) + len(e["Source"]) for e in call) for call in aws.calls]
    assert max(sizes) <= BYTES_PER_CALL


def test_only_the_entries_that_failed_are_put_again(aws: _BusOfAws) -> None:
    aws.failing = {1: (1, "InternalFailure"), 3: (2, "ThrottlingException")}
    aws.bus.publish(_events(4))
    assert [aws._numbers(call) for call in aws.calls] == [[0, 1, 2, 3], [1, 3], [3]]
    assert len(aws.slept) == 2


def test_an_entry_that_fails_for_ever_is_for_a_later_attempt(aws: _BusOfAws) -> None:
    aws.failing = {1: (99, "InternalFailure")}
    with pytest.raises(RetryLater):
        aws.bus.publish(_events(2))
    assert len(aws.calls) == 3


def test_an_entry_that_will_never_be_taken_is_refused_at_once(aws: _BusOfAws) -> None:
    aws.failing = {0: (99, "MalformedDetail")}
    with pytest.raises(Refused, match="MalformedDetail"):
        aws.bus.publish(_events(1))
    assert len(aws.calls) == 1


# EKS


def test_a_clusters_endpoint_is_asked_for_once(clients: Clients) -> None:
    authority = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()
    described = {"endpoint": "https://hub.eks", "certificateAuthority": {"data": authority}}
    eks = Eks(clients)
    with Stubber(clients.eks) as stubber:
        stubber.add_response("describe_cluster", {"cluster": described}, {"name": "hub"})
        at = eks.describe("hub")
        assert eks.describe("hub") is at
    assert (at.endpoint, at.ca_data) == ("https://hub.eks", "-----BEGIN CERTIFICATE-----")


def test_a_cluster_that_does_not_exist_is_not_found(clients: Clients) -> None:
    with pytest.raises(NotFound):
        Eks(clients).describe("absent")


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-west-2", "sts.us-west-2.amazonaws.com"),
        ("eu-central-1", "sts.eu-central-1.amazonaws.com"),
        ("cn-north-1", "sts.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_a_token_is_a_presigned_call_of_the_clusters_own_region(region: str, host: str, clients: Clients) -> None:
    token = Eks(Clients(region)).token_source("hub")()
    prefix, _, encoded = token.rpartition(".")
    assert prefix == "k8s-aws-v1"
    assert "=" not in encoded
    url = urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert (url.scheme, url.netloc, url.path) == ("https", host, "/")
    assert (query["Action"], query["Version"], query["X-Amz-Expires"]) == ("GetCallerIdentity", "2011-06-15", "60")
    assert query["X-Amz-SignedHeaders"].split(";") == ["host", "x-k8s-aws-id"]
    assert f"/{region}/sts/aws4_request" in query["X-Amz-Credential"]


def test_a_token_of_one_cluster_is_signed_for_no_other(clients: Clients) -> None:
    eks = Eks(clients)
    assert eks.token_source("hub")() != eks.token_source("lab")()


def _nodegroup_described(**scaling: int) -> dict[str, Any]:
    resources = {"autoScalingGroups": [{"name": "eks-notebooks-1"}]}
    return {"nodegroup": {"nodegroupName": "notebooks", "resources": resources, "scalingConfig": scaling}}


def test_a_node_group_leads_to_its_auto_scaling_group_once(clients: Clients) -> None:
    eks = Eks(clients)
    with Stubber(clients.eks) as stubber:
        stubber.add_response("describe_nodegroup", _nodegroup_described(minSize=1, maxSize=20, desiredSize=3))
        assert eks.group_of_nodegroup("hub", "notebooks") == "eks-notebooks-1"
        assert eks.group_of_nodegroup("hub", "notebooks") == "eks-notebooks-1"
        stubber.add_response("describe_nodegroup", _nodegroup_described(minSize=0, maxSize=20, desiredSize=3))
        nodegroup = eks.nodegroup("hub", "notebooks")
    assert (nodegroup.min_size, nodegroup.max_size, nodegroup.desired) == (0, 20, 3)


def test_a_node_group_that_is_still_being_made_leads_nowhere(clients: Clients) -> None:
    with Stubber(clients.eks) as stubber:
        stubber.add_response("describe_nodegroup", {"nodegroup": {"nodegroupName": "notebooks"}})
        with pytest.raises(NotFound):
            Eks(clients).group_of_nodegroup("hub", "notebooks")


def test_the_minimum_of_a_node_group_goes_through_eks(clients: Clients) -> None:
    """Case 59: MaxSize is never touched."""
    expected = {"clusterName": "hub", "nodegroupName": "notebooks", "scalingConfig": {"minSize": 0}}
    with Stubber(clients.eks) as stubber:
        stubber.add_response("update_nodegroup_config", {}, expected)
        Eks(clients).update_nodegroup_min_size("hub", "notebooks", 0)
        stubber.add_client_error("update_nodegroup_config", "ResourceInUseException", "an update is in progress", 409)
        with pytest.raises(RetryLater):
            Eks(clients).update_nodegroup_min_size("hub", "notebooks", 0)


# load balancers


@pytest.fixture
def target_group(clients: Clients) -> str:
    vpc = clients.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    answer = clients.elbv2.create_target_group(Name="hub", Protocol="HTTP", Port=80, VpcId=vpc, TargetType="instance")
    return answer["TargetGroups"][0]["TargetGroupArn"]


def test_an_instance_leaves_its_target_groups(clients: Clients, target_group: str) -> None:
    image = clients.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    instances = clients.ec2.run_instances(ImageId=image, MinCount=2, MaxCount=2)["Instances"]
    leaving, staying = (instance["InstanceId"] for instance in instances)
    clients.elbv2.register_targets(TargetGroupArn=target_group, Targets=[{"Id": leaving}, {"Id": staying}])
    balancers = LoadBalancers(clients)
    balancers.deregister([target_group], leaving)
    balancers.deregister([target_group], leaving)
    registered = clients.elbv2.describe_target_health(TargetGroupArn=target_group)["TargetHealthDescriptions"]
    assert [health["Target"]["Id"] for health in registered if health["TargetHealth"]["State"] != "draining"] == [
        staying
    ]
    assert balancers.target_states(target_group, [staying]).keys() == {staying}


def test_a_target_group_that_is_gone_is_left(clients: Clients, target_group: str) -> None:
    gone = target_group.replace("hub", "gone")
    balancers = LoadBalancers(clients)
    balancers.deregister([gone], "i-0aa")
    assert balancers.target_states(gone, ["i-0aa"]) == {}


# clients


def test_clients_give_up_in_seconds(clients: Clients) -> None:
    config: Any = clients.autoscaling.meta.config
    assert (config.connect_timeout, config.read_timeout) == (2, 5)
    assert config.retries == {"mode": "standard", "total_max_attempts": 4}


def test_a_client_is_made_once_and_in_the_environments_region(clients: Clients) -> None:
    assert clients.ec2 is clients.ec2
    assert clients.ec2.meta.region_name == REGION
