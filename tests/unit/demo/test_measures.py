"""The demo's numbers come out of the audit log as it is written."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from demo.measures import (
    PodTimes,
    Raise,
    first_deletion,
    longest_waits,
    pending_over,
    pod_times,
    quantile,
    raises,
    unix_seconds,
)


def entry(verb: str, name: str, at: str, *, subresource: str | None = None, code: int = 201, **more: Any) -> str:
    about = {"resource": "pods", "namespace": "jupyterhub", "name": name}
    if subresource:
        about["subresource"] = subresource
    written = {
        "stage": "ResponseComplete",
        "verb": verb,
        "objectRef": about,
        "responseStatus": {"code": code},
        "stageTimestamp": f"2026-12-01T08:00:{at}Z",
        **more,
    }
    return json.dumps(written)


def test_pending_is_from_the_creation_to_the_binding() -> None:
    log = [
        entry("create", "a", "00.000000"),
        entry("create", "b", "00.500000"),
        entry("create", "a", "00.250000", subresource="binding"),
        entry("create", "b", "02.000000", subresource="binding"),
    ]

    assert longest_waits(pod_times(log)) == pytest.approx([0.25, 1.5])
    assert pending_over(pod_times(log)) == 1


def test_a_binding_that_was_logged_before_its_creation_counts() -> None:
    log = [entry("create", "a", "00.250000", subresource="binding"), entry("create", "a", "00.000000")]

    assert longest_waits(pod_times(log)) == pytest.approx([0.25])


def test_a_pod_that_was_never_bound_waited_for_ever() -> None:
    times = pod_times(
        [entry("create", "a", "00.000000"), entry("create", "a", "01.0", subresource="binding", code=409)]
    )

    assert times["a"].pending_seconds == math.inf
    assert pending_over(times) == 1


def test_a_name_that_only_the_answer_knows_is_read_there() -> None:
    created = json.loads(entry("create", "x", "00.000000"))
    del created["objectRef"]["name"]
    created["responseObject"] = {"metadata": {"name": "generated-1"}}

    assert set(pod_times([json.dumps(created)])) == {"generated-1"}


def test_other_resources_and_refusals_are_not_counted() -> None:
    other = entry("create", "a", "00.000000").replace('"pods"', '"nodes"')

    assert pod_times([other, entry("create", "b", "00.000000", code=403)]) == {}


def test_a_deleted_or_evicted_student_is_named() -> None:
    evicted = entry("create", "a", "09.000000", subresource="eviction")
    deleted = entry("delete", "b", "09.000000", code=200)

    assert first_deletion([evicted], ["a"]) == "a"
    assert first_deletion([deleted], ["b"]) == "b"
    assert first_deletion([evicted, deleted], ["c"]) is None


def test_a_quantile_is_the_nearest_rank() -> None:
    waits = [float(second) for second in range(1, 101)]

    assert (quantile(waits, 0.5), quantile(waits, 0.95), quantile(waits, 1.0)) == (50.0, 95.0, 100.0)
    assert quantile([], 0.5) == 0.0
    assert quantile([3.0], 0.5) == 3.0


def test_times_are_read_to_the_microsecond() -> None:
    assert unix_seconds("1970-01-01T00:00:01.250000Z") == 1.25
    assert PodTimes(created=2.0, bound=1.9).pending_seconds == 0.0


def test_a_raise_is_an_accepted_call_that_asks_for_more_than_before() -> None:
    def call(at: float, desired: int, *, group: str = "pool", error: str | None = None) -> str:
        asked = {"AutoScalingGroupName": group, "DesiredCapacity": desired}
        return json.dumps({"time": at, "action": "SetDesiredCapacity", "parameters": asked, "error": error})

    described = json.dumps({"time": 0, "parameters": {"AutoScalingGroupNames": ["pool"]}, "error": None})
    log = [described, call(1, 3), call(2, 3), call(3, 99, error="ValidationError"), call(4, 9, group="b"), call(5, 12)]

    assert raises(log, "pool") == [Raise(1, 3), Raise(5, 12)]
