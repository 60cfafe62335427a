from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstbell.interruption.events import continuation_body, parse
from firstbell.interruption.notices import (
    Continuation,
    HookCall,
    Ignored,
    Interruption,
    Kind,
    ScheduledChange,
    Unparseable,
)
from tests.unit.interruption.samples import SAMPLES, sample, sample_names

FIRST = "i-0aa11bb22cc33dd41"
SECOND = "i-0aa11bb22cc33dd42"
THIRD = "i-0aa11bb22cc33dd43"


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


FUNCTIONS = str(Path(__file__).parents[3] / "functions")
NOTICED = at("2026-12-01T08:05:00Z")


def interruption(name: str) -> Interruption:
    notice = parse(sample(name))
    assert isinstance(notice, Interruption)
    return notice


@pytest.mark.parametrize(
    ("name", "kind", "deadline"),
    [
        ("spot_terminate", Kind.SPOT, NOTICED + 120),
        ("spot_stop", Kind.SPOT, NOTICED + 120),
        ("spot_hibernate", Kind.SPOT, NOTICED + 120),
        ("rebalance", Kind.REBALANCE, None),
        ("state_stopping", Kind.STATE_CHANGE, NOTICED + 30),
        ("state_shutting_down", Kind.STATE_CHANGE, NOTICED + 30),
        ("state_stopped", Kind.STATE_CHANGE, NOTICED),
        ("state_terminated", Kind.STATE_CHANGE, NOTICED),
        ("lifecycle_terminate", Kind.LIFECYCLE, None),
        ("flat_lifecycle_terminate", Kind.LIFECYCLE, None),
        ("capacity_reservation_interruption", Kind.CAPACITY_RESERVATION, at("2026-12-01T08:07:00Z")),
        ("capacity_block_instance_interruption", Kind.CAPACITY_RESERVATION, at("2026-12-01T08:15:00Z")),
    ],
)
def test_each_documented_kind_names_its_instance_and_its_deadline(
    name: str, kind: Kind, deadline: float | None
) -> None:
    """Case 32 for the state changes: stopping and shutting-down instances are drained with what time they have."""
    notice = interruption(name)
    assert (notice.kind, notice.instance_ids, notice.deadline) == (kind, (FIRST,), deadline)
    assert notice.event_id
    assert not notice.drill


def test_a_lifecycle_notice_says_the_same_flat_and_through_eventbridge() -> None:
    """Case 2: a terminate hook that was sent straight to the queue has no envelope."""
    hook = HookCall("notebook-a", "firstbell-drain", "87654321-4321-4321-8321-210987654321")
    flat, enveloped = interruption("flat_lifecycle_terminate"), interruption("lifecycle_terminate")
    assert flat.hook == enveloped.hook == hook
    assert flat.instance_ids == enveloped.instance_ids
    assert flat.event_time == pytest.approx(enveloped.event_time, abs=1)


def test_a_flat_lifecycle_body_needs_no_more_than_case_2_shows() -> None:
    """Case 2, its own words."""
    body = {
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "LifecycleHookName": "drain",
        "AutoScalingGroupName": "pool-a",
        "EC2InstanceId": "i-0aa",
        "LifecycleActionToken": "t1",
        "Service": "AWS Auto Scaling",
        "Time": "2026-12-01T08:05:00Z",
    }
    notice = parse(json.dumps(body))
    assert isinstance(notice, Interruption)
    assert (notice.instance_ids, notice.hook) == (("i-0aa",), HookCall("pool-a", "drain", "t1"))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("state_running", "state_of_no_concern"),
        ("state_pending", "state_of_no_concern"),
        ("lifecycle_launch", "unknown_kind"),
        ("flat_lifecycle_launch", "launch_hook"),
        ("lifecycle_from_warm_pool", "warm_pool_hook"),
        ("lifecycle_to_warm_pool", "warm_pool_hook"),
        ("flat_test_notification", "test_notification"),
        ("health_other_service", "health_of_no_concern"),
        ("health_fis", "health_of_no_concern"),
        ("health_account_notification", "health_of_no_concern"),
        ("health_issue", "health_of_no_concern"),
        ("capacity_block_delivered", "unknown_kind"),
    ],
)
def test_what_is_not_our_business_is_ignored_with_a_reason(name: str, reason: str) -> None:
    """Cases 4 and 32, launch and warm-pool hooks, and the notification that a new hook tests itself with."""
    assert parse(sample(name)) == Ignored(reason)


def test_a_health_event_names_every_instance_that_is_still_affected() -> None:
    notice = interruption("health_retirement")
    starts = at("2026-12-02T06:00:00Z")
    assert notice.instance_ids == (FIRST, SECOND)
    assert notice.deadline == starts
    assert notice.change == ScheduledChange(
        event_arn="arn:aws:health:us-west-2::event/EC2/AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED/"
        "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED_made-up-1",
        starts_at=starts,
        updated_at=at("2026-12-01T08:00:00Z"),
        communication="made-up-communication",
    )


def test_the_pages_of_one_health_announcement_carry_one_communication() -> None:
    first, second = interruption("health_retirement"), interruption("health_second_page")
    assert first.change is not None
    assert second.change is not None
    assert first.change.communication == second.change.communication
    assert second.instance_ids == (THIRD,)


def test_a_health_entity_may_be_an_arn_and_need_not_be_an_instance() -> None:
    assert interruption("health_entity_arn").instance_ids == (FIRST,)


def test_a_closed_scheduled_change_says_so() -> None:
    change = interruption("health_closed").change
    assert change is not None
    assert change.ended


def test_a_capacity_block_names_its_reservation_and_ends_half_an_hour_early() -> None:
    notice = interruption("capacity_block_expiration")
    assert (notice.kind, notice.reservation_id) == (Kind.CAPACITY_BLOCK, "cr-0aa11bb22cc33dd44")
    assert notice.instance_ids == ()
    assert notice.deadline == at("2026-12-01T08:15:00Z")


@pytest.mark.parametrize(
    ("name", "kind", "deadline"),
    [
        ("drill_spot", Kind.SPOT, NOTICED + 120),
        ("drill_rebalance", Kind.REBALANCE, None),
        ("drill_terminate", Kind.LIFECYCLE, NOTICED + 300),
    ],
)
def test_a_drill_is_the_kind_that_it_rehearses(name: str, kind: Kind, deadline: float | None) -> None:
    notice = interruption(name)
    assert (notice.kind, notice.deadline, notice.drill, notice.hook) == (kind, deadline, True, None)
    assert notice.instance_ids == (FIRST, SECOND)


def test_a_scheduled_change_that_is_due_is_drained_now() -> None:
    notice = interruption("scheduled_change_due")
    assert notice.due
    assert notice.change is None
    assert (notice.instance_ids, notice.deadline) == ((FIRST, SECOND), at("2026-12-02T06:00:00Z"))


def test_a_continuation_is_read_back_as_it_was_written() -> None:
    assert parse(sample("continuation")) == Continuation(FIRST, 2, Kind.SPOT, at("2026-12-01T08:07:00Z"))
    written = Continuation("i-0aa", 7, Kind.SCHEDULED_CHANGE, 1796112420.5)
    assert parse(continuation_body(written)) == written


def test_an_unknown_version_or_source_is_an_unknown_kind() -> None:
    document = json.loads(sample("spot_terminate"))
    assert parse(json.dumps({**document, "version": "9"})) == Ignored("unknown_kind")
    assert parse(json.dumps({**document, "source": "example.portal"})) == Ignored("unknown_kind")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not json",
        "[]",
        "[" * 200_000,
        "null",
        '"text"',
        json.dumps({"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"}),
        json.dumps({"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning", "detail": "x"}),
    ],
)
def test_a_body_that_is_no_event_is_unparseable(body: str) -> None:
    with pytest.raises(Unparseable):
        parse(body)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("spot_terminate", {"instance-id": None}),
        ("spot_terminate", {"instance-id": "i-0aa; rm"}),
        ("state_stopping", {"state": 7}),
        ("lifecycle_terminate", {"LifecycleHookName": ""}),
        ("lifecycle_terminate", {"AutoScalingGroupName": None}),
        ("health_retirement", {"startTime": "soon"}),
        ("health_retirement", {"affectedEntities": [FIRST]}),
        ("health_retirement", {"eventArn": None}),
        ("capacity_block_expiration", {"end-date": "[ODCR End Date]"}),
        ("drill_spot", {"kind": "earthquake"}),
        ("drill_spot", {"instance_ids": []}),
        ("drill_spot", {"instance_ids": "i-0aa"}),
        ("drill_spot", {"notice_seconds": -1}),
        ("drill_spot", {"notice_seconds": True}),
        ("continuation", {"pass": "2"}),
        ("continuation", {"deadline": None}),
        ("continuation", {"kind": "drought"}),
        ("scheduled_change_due", {"starts_at": None}),
    ],
)
def test_a_wrong_field_is_named(name: str, change: dict[str, Any]) -> None:
    document = json.loads(sample(name))
    document["detail"].update(change)
    with pytest.raises(Unparseable, match=next(iter(change))):
        parse(json.dumps(document))


def test_a_wrong_time_is_named() -> None:
    document = json.loads(sample("spot_terminate"))
    with pytest.raises(Unparseable, match="time"):
        parse(json.dumps({**document, "time": "yesterday"}))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sample_names()), st.data())
def test_no_mutation_of_a_sample_raises_anything_but_unparseable(name: str, data: st.DataObject) -> None:
    """A crash would be a retry until the DLQ, and after it one more (cases 2, 4 and 6)."""
    document = json.loads(sample(name))
    target = data.draw(st.sampled_from([document, document["detail"]] if "detail" in document else [document]))
    target[data.draw(st.sampled_from(sorted(target)))] = data.draw(JSON_VALUES)
    with contextlib.suppress(Unparseable):
        parse(json.dumps(document))


def test_parsing_imports_no_client() -> None:
    """Irrelevant events pay for no client's import; hence a fresh interpreter."""
    program = (
        "import sys, pathlib\n"
        "from firstbell.interruption.events import parse\n"
        f"for path in pathlib.Path({str(SAMPLES)!r}).glob('*.json'): parse(path.read_text())\n"
        "heavy = {'boto3', 'botocore', 'urllib3', 'kubernetes', 'pydantic', 'aws_lambda_powertools'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": FUNCTIONS}, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
