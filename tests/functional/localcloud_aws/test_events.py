"""PutEvents, bus policies, rules and targets against the started emulator."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import urllib3
from botocore.exceptions import ClientError

from tests.functional.localcloud_aws.conftest import ACCOUNT, REGION, StartedCloud
from tests.functional.localcloud_aws.functions import eventually, make_role, unique

PORTAL_ACCOUNT = "111111111111"


def entry(bus: str, **changes: Any) -> dict[str, Any]:
    made = {"EventBusName": bus, "Source": "portal", "DetailType": "Demand Signal", "Detail": '{"pods": 40}', **changes}
    return {name: value for name, value in made.items() if value is not None}


class Tap:
    """A bus with a rule that puts what matches on a queue."""

    def __init__(
        self, cloud: StartedCloud, *, pattern: Any = None, bus: str | None = None, region: str = REGION
    ) -> None:
        self.events, self.sqs = cloud.client("events", region=region), cloud.client("sqs", region=region)
        self.bus, self.rule = bus or unique("bus"), unique("rule")
        if bus is None:
            self.events.create_event_bus(Name=self.bus)
        self.queue_url = self.sqs.create_queue(QueueName=unique("tap"))["QueueUrl"]
        self.queue_arn = self.sqs.get_queue_attributes(QueueUrl=self.queue_url, AttributeNames=["QueueArn"])[
            "Attributes"
        ]["QueueArn"]
        pattern = pattern or {"source": [{"exists": True}]}
        self.rule_arn = self.events.put_rule(Name=self.rule, EventBusName=self.bus, EventPattern=json.dumps(pattern))[
            "RuleArn"
        ]
        self.allow_rule()
        self.events.put_targets(Rule=self.rule, EventBusName=self.bus, Targets=[{"Id": "tap", "Arn": self.queue_arn}])

    @property
    def bus_arn(self) -> str:
        arn: str = self.events.describe_event_bus(Name=self.bus)["Arn"]
        return arn

    def allow_rule(self) -> None:
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": self.queue_arn,
            "Condition": {"ArnEquals": {"aws:SourceArn": self.rule_arn}},
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        self.sqs.set_queue_attributes(QueueUrl=self.queue_url, Attributes={"Policy": policy})

    def waiting(self) -> int:
        attributes = self.sqs.get_queue_attributes(
            QueueUrl=self.queue_url, AttributeNames=["ApproximateNumberOfMessages"]
        )["Attributes"]
        return int(attributes["ApproximateNumberOfMessages"])

    def next(self) -> dict[str, Any]:
        (message,) = self.sqs.receive_message(QueueUrl=self.queue_url, WaitTimeSeconds=10)["Messages"]
        self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
        event: dict[str, Any] = json.loads(message["Body"])
        return event


@pytest.fixture
def tap(cloud: StartedCloud) -> Tap:
    return Tap(cloud)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"Source": None}, "InvalidArgument"),
        ({"DetailType": None}, "InvalidArgument"),
        ({"Detail": None}, "InvalidArgument"),
        ({"Detail": '{"pods": 40'}, "MalformedDetail"),
        ({"Detail": "[40]"}, "MalformedDetail"),
        ({"Source": "aws.ec2"}, "NotAuthorizedForSourceException"),
    ],
)
def test_a_bad_entry_is_refused_by_itself(cloud: StartedCloud, tap: Tap, changes: dict[str, Any], code: str) -> None:
    answer = cloud.client("events").put_events(Entries=[entry(tap.bus, **changes), entry(tap.bus)])
    assert answer["FailedEntryCount"] == 1
    assert answer["Entries"][0]["ErrorCode"] == code
    assert tap.next()["id"] == answer["Entries"][1]["EventId"]
    assert tap.waiting() == 0


def test_a_request_over_one_mebibyte_is_refused_whole(cloud: StartedCloud, tap: Tap) -> None:
    events = cloud.client("events")
    fits = json.dumps({"x": "y" * (1024 * 1024 - 50)})
    assert events.put_events(Entries=[entry(tap.bus, Detail=fits)])["FailedEntryCount"] == 0
    with pytest.raises(ClientError, match="over the limit"):
        events.put_events(Entries=[entry(tap.bus, Detail=fits), entry(tap.bus)])


def test_the_entrys_time_is_the_envelopes(cloud: StartedCloud, tap: Tap) -> None:
    told = datetime(2026, 12, 1, 7, 55, tzinfo=UTC)
    cloud.client("events").put_events(Entries=[entry(tap.bus, Time=told, Resources=["arn:x"])])
    event = tap.next()
    assert (event["time"], event["resources"]) == ("2026-12-01T07:55:00Z", ["arn:x"])
    assert (event["account"], event["region"]) == (ACCOUNT, REGION)


def test_a_policy_tells_accounts_roles_and_sources_apart(cloud: StartedCloud, tap: Tap) -> None:
    role = unique("portal")
    make_role(cloud, role)
    session = cloud.client("sts").assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{role}", RoleSessionName="portal")
    keys = session["Credentials"]
    as_role = cloud.client("events", key=keys["AccessKeyId"], token=keys["SessionToken"])
    as_portal = cloud.client("events", key=PORTAL_ACCOUNT)
    as_stranger = cloud.client("events", key="222222222222")
    only_the_role = {"aws:PrincipalArn": f"arn:aws:iam::{ACCOUNT}:role/{role}"}
    own_source = {"StringEquals": {"events:source": "firstbell"}, "ArnNotEquals": only_the_role}
    common = {"Action": "events:PutEvents", "Resource": tap.bus_arn}
    statements = [
        {"Sid": "portals", "Effect": "Allow", "Principal": {"AWS": PORTAL_ACCOUNT}, **common},
        {"Sid": "own", "Effect": "Deny", "Principal": "*", **common, "Condition": own_source},
    ]
    cloud.client("events").put_permission(
        EventBusName=tap.bus, Policy=json.dumps({"Version": "2012-10-17", "Statement": statements})
    )

    def code(client: Any, source: str) -> str | None:
        (result,) = client.put_events(Entries=[entry(tap.bus_arn, Source=source)])["Entries"]
        found: str | None = result.get("ErrorCode")
        return found

    assert code(as_portal, "portal") is None
    assert tap.next()["account"] == PORTAL_ACCOUNT
    assert code(as_portal, "firstbell") == "NotAuthorizedForSourceException"
    assert code(as_stranger, "portal") == "AccessDeniedException"
    assert code(as_role, "firstbell") is None
    assert code(cloud.client("events"), "firstbell") == "NotAuthorizedForSourceException"


def test_an_aws_event_goes_through_the_rules_of_the_default_bus(cloud: StartedCloud) -> None:
    warning = {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]}
    tap = Tap(cloud, bus="default", pattern=warning)
    envelope = {
        "source": "aws.ec2",
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "detail": {"instance-id": "i-1", "instance-action": "terminate"},
        "resources": ["arn:aws:ec2:us-west-2a:instance/i-1"],
        "time": "2026-12-01T08:00:00Z",
    }
    cloud.post("/_localcloud/aws-events", {**envelope, "detail-type": "Something else"})
    sent = cloud.post("/_localcloud/aws-events", envelope)
    assert tap.next() == {**envelope, "version": "0", "id": sent["id"], "account": ACCOUNT, "region": REGION}
    assert tap.waiting() == 0


def test_a_door_refuses_what_is_no_envelope(cloud: StartedCloud) -> None:
    door = f"{cloud.endpoint}/_localcloud/aws-events"
    for body, word in (({"source": "aws.ec2"}, "detail-type"), ([], "envelope")):
        answer = urllib3.request("POST", door, json=body)
        assert (answer.status, word in answer.data.decode()) == (400, True)
    assert urllib3.request("GET", f"{cloud.endpoint}/_localcloud/nothing").status == 404


PATTERNS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("exact", {"region": ["us-west-2"]}, {"region": "us-west-2"}, {"region": "us-east-1"}),
    ("anything-but", {"region": [{"anything-but": ["a", "b"]}]}, {"region": "c"}, {"region": "b"}),
    ("prefix", {"pool": [{"prefix": "nb-"}]}, {"pool": "nb-1"}, {"pool": "dask"}),
    ("suffix", {"pool": [{"suffix": "-xl"}]}, {"pool": "nb-xl"}, {"pool": "nb"}),
    ("exists", {"end": [{"exists": False}]}, {"pods": 1}, {"end": None}),
    ("numeric", {"pods": [{"numeric": [">", 0, "<=", 100]}]}, {"pods": 100}, {"pods": 101}),
    ("$or", {"$or": [{"a": [1]}, {"b": [2]}]}, {"b": 2}, {"a": 2}),
    ("nested", {"pod": {"gpu": [{"numeric": [">", 0]}]}}, {"pod": {"gpu": 1}}, {"pod": {"gpu": 0}}),
]


@pytest.mark.parametrize(("name", "pattern", "matching", "other"), PATTERNS, ids=[row[0] for row in PATTERNS])
def test_event_patterns_match_as_aws_does(
    cloud: StartedCloud, name: str, pattern: dict[str, Any], matching: dict[str, Any], other: dict[str, Any]
) -> None:
    tap = Tap(cloud, pattern={"detail": pattern})
    entries = [entry(tap.bus, Detail=json.dumps(detail)) for detail in (other, matching)]
    assert cloud.client("events").put_events(Entries=entries)["FailedEntryCount"] == 0
    assert tap.next()["detail"] == matching
    assert tap.waiting() == 0


def test_a_rule_forwards_to_the_bus_of_another_region_and_no_further(cloud: StartedCloud) -> None:
    origin, target = Tap(cloud), Tap(cloud, region="us-east-1")
    third = Tap(cloud, region="eu-west-1")
    role = f"arn:aws:iam::{ACCOUNT}:role/forwarder"

    def forward(tap: Tap, arn: str) -> None:
        tap.events.put_targets(
            Rule=tap.rule, EventBusName=tap.bus, Targets=[{"Id": "forward", "Arn": arn, "RoleArn": role}]
        )

    forward(origin, target.bus_arn)
    forward(target, third.bus_arn)
    cloud.client("events").put_events(Entries=[entry(origin.bus)])
    here, there = origin.next(), target.next()
    assert there == here
    assert there["region"] == REGION
    assert third.waiting() == 0


def test_what_a_rule_may_not_or_cannot_deliver_goes_to_the_targets_dead_letters(cloud: StartedCloud) -> None:
    tap, dead = Tap(cloud), Tap(cloud)
    tap.sqs.set_queue_attributes(QueueUrl=tap.queue_url, Attributes={"Policy": ""})
    nowhere = f"arn:aws:events:eu-north-1:{ACCOUNT}:event-bus/none"
    letters = {"Arn": dead.queue_arn}
    targets = [
        {"Id": "tap", "Arn": tap.queue_arn, "DeadLetterConfig": letters},
        {"Id": "bus", "Arn": nowhere, "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/r", "DeadLetterConfig": letters},
    ]
    tap.events.put_targets(Rule=tap.rule, EventBusName=tap.bus, Targets=targets)
    cloud.client("events").put_events(Entries=[entry(tap.bus)])
    eventually(lambda: dead.waiting() == 2)
    messages = dead.sqs.receive_message(QueueUrl=dead.queue_url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])[
        "Messages"
    ]
    codes = {message["MessageAttributes"]["ERROR_CODE"]["StringValue"] for message in messages}
    assert codes == {"NO_PERMISSIONS", "RESOURCE_NOT_FOUND"}
    assert tap.waiting() == 0
