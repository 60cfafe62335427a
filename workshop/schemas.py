"""JSON Schemas of the events that Firstbell takes and sends, kept in schemas/ and made from the models themselves.

python -m workshop.schemas write    make them again
python -m workshop.schemas check    1 when a model changed and its schema did not
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from firstbell.outcomes import Outcome
from firstbell.prescale.signals import ALLOWED, DemandCancelled, DemandSignal
from workshop.steps import ROOT

SCHEMAS = ROOT / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def event_schemas() -> dict[Path, str]:
    """File -> the schema of the detail of one detail-type, as it is kept in the repository."""
    signals: dict[str, type[BaseModel]] = {"Demand Signal": DemandSignal, "Demand Cancelled": DemandCancelled}
    schemas = {detail_type: _of_signal(model) for detail_type, model in signals.items()}
    schemas |= {outcome.DETAIL_TYPE: _of_outcome(outcome) for outcome in Outcome.__subclasses__()}
    return {
        SCHEMAS / f"{detail_type.lower().replace(' ', '-')}.schema.json": _text(detail_type, schema)
        for detail_type, schema in schemas.items()
    }


def _of_signal(model: type[BaseModel]) -> dict[str, Any]:
    """What a portal may send. Other fields are ignored, so they are not forbidden here either."""
    schema = model.model_json_schema()
    pod = schema.get("$defs", {}).get("PodRequest", {})
    for prefix, properties in (("", schema["properties"]), ("pod.", pod.get("properties", {}))):
        for name, field in properties.items():
            field["description"] = ALLOWED[prefix + name]
    return schema


def _of_outcome(outcome: type[Outcome]) -> dict[str, Any]:
    """What a consumer can rely on: every field is there, and what its docstring says of it."""
    outcome.__pydantic_config__ = ConfigDict(use_attribute_docstrings=True)  # type: ignore[attr-defined]
    schema = TypeAdapter(outcome).json_schema(mode="serialization")
    return {"description": outcome.__doc__, **schema, "required": list(schema["properties"])}


def _text(detail_type: str, schema: dict[str, Any]) -> str:
    return json.dumps({"$schema": DIALECT, **schema, "title": detail_type}, indent=2) + "\n"


def drifted() -> list[str]:
    """Names of schema files that are not what the models say, those of no model included."""
    expected = event_schemas()
    kept = {path: path.read_text(encoding="utf-8") for path in SCHEMAS.glob("*.schema.json")}
    kept.pop(SCHEMAS / "firstbell.schema.json", None)
    return sorted(path.name for path in {*expected, *kept} if expected.get(path) != kept.get(path))


def main(arguments: list[str]) -> int:
    if arguments == ["write"]:
        for path, text in event_schemas().items():
            path.write_text(text, encoding="utf-8")
    elif arguments != ["check"]:
        print(__doc__)
        return 2
    for name in drifted():
        print(f"schemas/{name} is not what the models say; run: python -m workshop.schemas write")
    return 1 if drifted() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
