"""Who may put what on the bus, and where a signal goes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from moto.events.models import EventPattern

from infra import names
from infra.bus_policy import Senders, bus_statements
from tests.infra import documents
from tests.infra.stacks import Synthesized, synthesize

OWN = "111111111111"
PORTAL = "222222222222"
TIMETABLE_ROLE = f"arn:aws:iam::{PORTAL}:role/timetable"
PRESCALE_ROLE = f"arn:aws:iam::{OWN}:role/prescale"
FORWARDING_ROLE = f"arn:aws:iam::{OWN}:role/firstbell-hub-eu-forward"
OPERATOR_ROLE = f"arn:aws:iam::{OWN}:role/operator"
SOMEBODY = f"arn:aws:iam::{OWN}:role/somebody"


def statements(**changes: Any) -> list[dict[str, Any]]:
    given: dict[str, Any] = {
        "signals": {
            "edu.timetable": Senders(roles=[TIMETABLE_ROLE]),
            "edu.exams": Senders(accounts=[PORTAL], roles=[SOMEBODY]),
        },
        "drills": Senders(roles=[OPERATOR_ROLE]),
        "own_roles": [PRESCALE_ROLE],
        "forwarding_roles": [FORWARDING_ROLE],
        **changes,
    }
    return list(bus_statements(f"arn:aws:events:us-west-2:{OWN}:event-bus/firstbell-hub", "aws", **given).values())


def may_put(principal: str, source: str, policy: list[dict[str, Any]]) -> bool:
    """IAM's evaluation for a caller whose own policy allows events:PutEvents: a Deny wins; in the bus's account that
    suffices; from another account the bus has to allow it as well.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
    """
    account = principal.split(":")[4]
    caller = {"events:source": source, "aws:PrincipalArn": principal, "aws:PrincipalAccount": account}

    def applies(statement: dict[str, Any]) -> bool:
        named = statement["Principal"]
        if named != "*" and not {principal, f"arn:aws:iam::{account}:root"} & set(named["AWS"]):
            return False
        return all(
            (caller[key] in (values if isinstance(values, list) else [values])) == (operator == "StringEquals")
            for operator, keys in statement["Condition"].items()
            for key, values in keys.items()
        )

    effects = {statement["Effect"] for statement in policy if applies(statement)}
    return "Deny" not in effects and (account == OWN or "Allow" in effects)


@pytest.mark.parametrize(
    ("principal", "source", "allowed"),
    [
        (TIMETABLE_ROLE, "edu.timetable", True),
        (f"arn:aws:iam::{PORTAL}:role/other", "edu.timetable", False),
        (f"arn:aws:iam::{PORTAL}:role/other", "edu.exams", True),
        (SOMEBODY, "edu.exams", True),
        (SOMEBODY, "edu.timetable", False),
        (TIMETABLE_ROLE, "edu.unlisted", False),
        ("arn:aws:iam::333333333333:role/stranger", "edu.exams", False),
        (TIMETABLE_ROLE, "firstbell", False),
        (SOMEBODY, "firstbell", False),
        (f"arn:aws:iam::{OWN}:root", "firstbell", False),
        (PRESCALE_ROLE, "firstbell", True),
        (PRESCALE_ROLE, "edu.timetable", False),
        (OPERATOR_ROLE, "firstbell.drill", True),
        (TIMETABLE_ROLE, "firstbell.drill", False),
        (PRESCALE_ROLE, "firstbell.drill", False),
        (FORWARDING_ROLE, "edu.timetable", True),
        (FORWARDING_ROLE, "firstbell", False),
        (FORWARDING_ROLE, "firstbell.drill", False),
        (SOMEBODY, "aws.ec2", False),
    ],
)
def test_only_listed_pairs_of_principal_and_source_reach_the_bus(principal: str, source: str, allowed: bool) -> None:
    assert may_put(principal, source, statements()) is allowed


def test_nobody_drills_where_nobody_is_listed() -> None:
    policy = statements(drills=Senders())
    assert not may_put(OPERATOR_ROLE, "firstbell.drill", policy)


def test_the_stack_denies_forged_outcomes_to_all_but_its_own_functions(shipped: Synthesized) -> None:
    policy = [entry["Statement"] for entry in shipped.of_type("AWS::Events::EventBusPolicy").values()]
    [forged] = [s for s in policy if s["Condition"].get("StringEquals") == {"events:source": "firstbell"}]
    assert forged["Effect"] == "Deny"
    roles = forged["Condition"]["StringNotEquals"]["aws:PrincipalArn"]
    own = {
        entry["Role"]["Fn::GetAtt"][0]
        for entry in shipped.of_type("AWS::Lambda::Function").values()
        if entry["FunctionName"] != "firstbell-hub-az-rebalance"
    }
    assert {role["Fn::GetAtt"][0] for role in roles} == own


def test_the_policy_of_a_dozen_portals_fits_into_ten_kilobytes() -> None:
    """EventBridge's quota on the size of a bus's policy."""
    signals = {f"edu.example.portal-{n}": Senders(roles=[f"arn:aws:iam::{PORTAL}:role/portal-{n}"]) for n in range(12)}
    assert len(json.dumps(statements(signals=signals))) < 10 * 1024


@pytest.fixture(scope="module")
def two_regions() -> str:
    return documents.text(
        documents.cluster("hub", "us-west-2", portals=[documents.portal()]),
        documents.cluster("hub-eu", "eu-west-1", portals=[documents.portal()]),
    )


@pytest.fixture(scope="module")
def west(two_regions: str) -> Synthesized:
    return synthesize(two_regions, "hub")


def signal(**detail: Any) -> dict[str, Any]:
    return {"detail-type": "Demand Signal", "source": "edu.example.timetable", "detail": {"pods": 40, **detail}}


def matches(pattern: dict[str, Any], event: Any) -> bool:
    return EventPattern.load(json.dumps(pattern)).matches_event(event)


def targets_of(stack: Synthesized, event: dict[str, Any]) -> list[str]:
    """`function`, or the region that the event is forwarded to."""
    found = []
    for rule in stack.of_type("AWS::Events::Rule").values():
        if "EventBusName" in rule and matches(rule["EventPattern"], event):
            forwarded = re.search(r":events:([a-z0-9-]+):", json.dumps(rule["Targets"][0]["Arn"]))
            found.append(forwarded[1] if forwarded else "function")
    return found


@pytest.mark.parametrize(
    ("detail", "target"),
    [
        ({"region": "us-west-2"}, "function"),
        ({"region": "eu-west-1"}, "eu-west-1"),
        ({"region": "ap-south-1"}, "function"),
        ({}, "function"),
        ({"region": 7}, "function"),
        ({"region": ""}, "function"),
        ({"region": None}, "function"),
    ],
)
def test_every_signal_has_exactly_one_way_to_go(west: Synthesized, detail: dict[str, Any], target: str) -> None:
    assert targets_of(west, signal(**detail)) == [target]


def test_a_cancellation_goes_where_its_signal_went(west: Synthesized) -> None:
    assert targets_of(west, {**signal(region="eu-west-1"), "detail-type": "Demand Cancelled"}) == ["eu-west-1"]


def test_outcomes_start_nothing(west: Synthesized) -> None:
    assert targets_of(west, {**signal(), "detail-type": "Capacity Ready", "source": "firstbell"}) == []


def test_a_forwarded_signal_is_let_in_where_it_arrives(two_regions: str) -> None:
    east = synthesize(two_regions, "hub-eu")
    denied = [
        entry["Statement"]
        for entry in east.of_type("AWS::Events::EventBusPolicy").values()
        if entry["Statement"]["Condition"].get("StringEquals") == {"events:source": "edu.example.timetable"}
        and entry["Statement"]["Effect"] == "Deny"
    ]
    [carriers] = denied[0]["Condition"]["StringNotEquals"]["aws:PrincipalArn"]
    assert "role/firstbell-hub-forward" in json.dumps(carriers)


def test_forwarding_may_do_nothing_else(west: Synthesized) -> None:
    role = west.logical_id("AWS::IAM::Role", RoleName="firstbell-hub-forward")
    [policy] = [p for p in west.of_type("AWS::IAM::Policy").values() if p["Roles"] == [{"Ref": role}]]
    [statement] = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == "events:PutEvents"
    assert "event-bus/firstbell-hub-eu" in json.dumps(statement["Resource"])


def test_one_region_alone_asks_nothing_of_a_signals_region(shipped: Synthesized) -> None:
    assert targets_of(shipped, signal(region="us-west-2")) == ["function"]
    assert targets_of(shipped, signal(region="mars-1")) == ["function"]
    assert not [role for role in shipped.of_type("AWS::IAM::Role").values() if "RoleName" in role]


def test_signals_are_archived_for_replays_and_nothing_else_is(shipped: Synthesized) -> None:
    """A drill that is replayed would drain nodes again."""
    archive = shipped.one("AWS::Events::Archive")
    assert archive["EventPattern"] == {"detail-type": ["Demand Signal", "Demand Cancelled"]}
    assert archive["RetentionDays"] == 30
    assert archive["ArchiveName"] == "firstbell-hub"


def test_the_name_of_an_archive_fits() -> None:
    """https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_CreateArchive.html"""
    assert len(names.archive_name("x" * 100)) == 48
