"""The JSON Schemas of events are what the models say, and what really goes over the bus."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from firstbell.outcomes import Outcome
from firstbell.prescale.signals import DemandSignal, parse_signal
from tests.fakes.school import PLACES, School, pool
from workshop import schemas

FULL = {
    "reference": "bio101-2026-12-01",
    "revision": 3,
    "region": "us-west-2",
    "cluster": "hub",
    "pool": "notebook",
    "pods": 120,
    "pod": {"cpu": "500m", "memory": "2Gi", "gpu": 0},
    "starts_at": "2026-12-01T09:00:00-08:00",
    "ends_at": "2026-12-01T10:30:00-08:00",
    "hold_minutes": 60,
}


@cache
def validator(detail_type: str) -> jsonschema.Draft202012Validator:
    path = schemas.SCHEMAS / f"{detail_type.lower().replace(' ', '-')}.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"] == detail_type
    return jsonschema.Draft202012Validator(schema)


def test_the_schemas_in_the_repository_are_those_of_the_models() -> None:
    """`python -m workshop.schemas write` makes them."""
    assert schemas.drifted() == []


def test_every_detail_type_has_its_schema() -> None:
    for detail_type in ("Demand Signal", "Demand Cancelled", *(o.DETAIL_TYPE for o in Outcome.__subclasses__())):
        validator(detail_type)


@pytest.mark.parametrize("detail", [{"region": "us-west-2", "pods": 40}, FULL, FULL | {"teacher": "Ms. B"}])
def test_what_the_schema_accepts_is_accepted(detail: dict[str, Any]) -> None:
    validator("Demand Signal").validate(detail)
    assert isinstance(parse_signal(detail), DemandSignal)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pods": 0},
        {"pods": "30"},
        {"pods": 10_001},
        {"region": None},
        {"reference": "a b"},
        {"reference": "x" * 64},
        {"revision": -1},
        {"pod": "500m"},
        {"pod": {"gpu": 17}},
        {"hold_minutes": 0},
    ],
)
def test_what_the_schema_refuses_is_refused(wrong: dict[str, Any]) -> None:
    assert not validator("Demand Signal").is_valid(FULL | wrong)
    assert isinstance(parse_signal(FULL | wrong), list)


def test_each_outcome_of_a_morning_is_as_its_schema_says() -> None:
    school = School(pools=(pool(fallback=("spare",)), pool("spare")), max_size=2)
    school.deliver(school.signal(2 * PLACES))
    school.grow()
    school.tick()
    school.deliver(school.signal(3 * PLACES, "chem202"))
    school.deliver(school.signal(0, "phys303"))
    school.change_group("spare", suspended=frozenset({"Launch"}))
    school.deliver(school.signal(2 * PLACES, "math404", pool="spare"))
    said = {event.detail_type for event in school.bus.events}
    assert said == {"Capacity Requested", "Capacity Ready", "Capacity Short", "Signal Rejected"}
    for event in school.bus.events:
        validator(event.detail_type).validate(json.loads(json.dumps(event.detail)))


def test_a_changed_model_is_noticed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(schemas, "event_schemas", dict)
    assert schemas.main(["check"]) == 1
    assert "schemas/demand-signal.schema.json is not what the models say" in capsys.readouterr().out
