"""Demand signals as they come in from a portal: validated here, at the boundary, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
)

from firstbell.outcomes import FieldProblem

MOST_PODS = 10_000
MOST_HOLD_MINUTES = 7 * 24 * 60
LARGEST_REVISION = 2**53 - 1
"""The largest whole number that every JSON parser keeps; milliseconds since 1970 stay far below."""
MOST_NAMED = 20
MOST_CHARACTERS_SHOWN = 60
_LABEL_VALUE = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
_RFC3339 = re.compile(r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$")


def _moment(value: Any) -> datetime:
    if not isinstance(value, str) or not _RFC3339.match(value):
        raise ValueError("not RFC 3339 with an offset")
    return datetime.fromisoformat(value.upper())


Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
Reference = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=_LABEL_VALUE)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class PodRequest(BaseModel):
    """What one pod asks for, as Kubernetes quantities. What is left out is taken from the pool's `pod`."""

    model_config = ConfigDict(strict=True)

    cpu: str | int | float | None = None
    memory: str | int | None = None
    gpu: Annotated[int, Field(ge=0, le=16)] | None = None


class DemandSignal(BaseModel):
    """`Demand Signal`: that many pods are coming. Smallest valid detail: `{"region": "us-west-2", "pods": 40}`."""

    model_config = ConfigDict(strict=True)

    region: Name
    pods: Annotated[int, Field(ge=1, le=MOST_PODS)]
    reference: Reference | None = None
    revision: Annotated[int, Field(ge=0, le=LARGEST_REVISION)] | None = None
    cluster: Name | None = None
    pool: Name | None = None
    pod: PodRequest | None = None
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    hold_minutes: Annotated[int, Field(ge=1, le=MOST_HOLD_MINUTES)] | None = None


class DemandCancelled(BaseModel):
    """`Demand Cancelled`: the class with this reference does not come, or has gone."""

    model_config = ConfigDict(strict=True)

    reference: Reference
    region: Name | None = None
    cluster: Name | None = None


class Envelope(BaseModel):
    """EventBridge's envelope, as far as it is used. It is AWS's own: a wrong one is a bug, and raises."""

    id: str
    source: str
    account: str
    time: AwareDatetime
    detail_type: Annotated[str, Field(alias="detail-type")]
    detail: Any = None


ALLOWED: Mapping[str, str] = {
    "region": "a region that the operator's file lists, as a string",
    "pods": f"a whole number from 1 to {MOST_PODS}",
    "reference": "1 to 63 letters, digits, '.', '_' or '-', beginning and ending with a letter or digit",
    "revision": f"a whole number from 0 to {LARGEST_REVISION}",
    "cluster": "the name of the cluster, as a string",
    "pool": "the name of a pool, as a string",
    "pod": 'an object such as {"cpu": "500m", "memory": "2Gi", "gpu": 0}',
    "pod.cpu": 'a Kubernetes quantity such as "500m"',
    "pod.memory": 'a Kubernetes quantity such as "2Gi"',
    "pod.gpu": "a whole number from 0 to 16",
    "starts_at": 'RFC 3339 with an offset, such as "2026-12-01T09:00:00-08:00"',
    "ends_at": 'RFC 3339 with an offset, such as "2026-12-01T10:30:00-08:00"',
    "hold_minutes": f"a whole number from 1 to {MOST_HOLD_MINUTES}",
}
"""What each field may be, in the words of Signal Rejected; the schemas in `schemas/` carry them, too."""

Model = TypeVar("Model", bound=BaseModel)


def parse_envelope(event: Mapping[str, Any]) -> Envelope:
    return Envelope.model_validate(event)


def parse_signal(detail: Any) -> DemandSignal | list[FieldProblem]:
    """A validated signal, or every field that is wrong and what is allowed there."""
    return _parse(DemandSignal, detail)


def parse_cancellation(detail: Any) -> DemandCancelled | list[FieldProblem]:
    """A validated cancellation, or every field that is wrong and what is allowed there."""
    return _parse(DemandCancelled, detail)


def unknown_fields(model: type[BaseModel], detail: Mapping[str, Any]) -> list[str]:
    """Fields that the model does not know: ignored, and named once in the log, as many as a line should hold."""
    unknown = [name for name in detail if name not in model.model_fields]
    if "pod" in model.model_fields and isinstance(detail.get("pod"), dict):
        unknown += [f"pod.{name}" for name in detail["pod"] if name not in PodRequest.model_fields]
    return sorted(name[:MOST_CHARACTERS_SHOWN] for name in unknown)[:MOST_NAMED]


def _parse(model: type[Model], detail: Any) -> Model | list[FieldProblem]:
    if not isinstance(detail, dict):
        return [FieldProblem("detail", f"is {shown(detail)}; allowed: a JSON object")]
    try:
        return model.model_validate(detail)
    except ValidationError as error:
        problems = {}
        for entry in error.errors(include_url=False, include_context=False):
            # A union reports each member with its own name behind the field's: pod.cpu.str, pod.cpu.int.
            path = ".".join(str(part) for part in entry["loc"][: 2 if entry["loc"][0] == "pod" else 1])
            said = "is missing" if entry["type"] == "missing" else f"is {shown(_at(detail, path))}"
            problems[path] = FieldProblem(path, f"{said}; allowed: {ALLOWED[path]}")
        return list(problems.values())


def _at(detail: Mapping[str, Any], path: str) -> Any:
    value: Any = detail
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else value
    return value


def shown(value: Any) -> str:
    """A value as a message may carry it: short, whatever was sent."""
    text = repr(value)
    return text if len(text) <= MOST_CHARACTERS_SHOWN else f"{text[: MOST_CHARACTERS_SHOWN - 3]}..."
