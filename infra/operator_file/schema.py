"""JSON Schema of the operator's file: `python -m infra.operator_file.schema` writes schemas/firstbell.schema.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from infra.operator_file.models import OperatorFile

SCHEMA_FILE = Path(__file__).resolve().parents[2] / "schemas" / "firstbell.schema.json"


def schema_text() -> str:
    """The schema as it is kept in the repository."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "firstbell.yaml",
        **OperatorFile.model_json_schema(by_alias=True),
    }
    return json.dumps(schema, indent=2) + "\n"


def main() -> int:
    SCHEMA_FILE.parent.mkdir(exist_ok=True)
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
