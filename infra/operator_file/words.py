"""What is allowed at a path of the operator's file, in words, from its JSON Schema."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from infra.operator_file.fields import WORDS
from infra.operator_file.models import OperatorFile

if TYPE_CHECKING:
    from infra.operator_file.rules import Path

TYPE_WORDS = {"boolean": "true or false", "integer": "a whole number", "number": "a number"}


class Vocabulary:
    """Says what may stand where."""

    def __init__(self) -> None:
        self._schema = OperatorFile.model_json_schema(by_alias=True)

    def allowed(self, path: Path) -> str:
        return self._words(self._node(path))

    def allowed_key(self, path: Path) -> str:
        """For a path whose last step is a free key of a mapping, such as a label's."""
        return str(self._node(path[:-1])["propertyNames"][WORDS])

    def misspelt(self, path: Path) -> tuple[str, str]:
        """(the key probably meant, or "", and all keys allowed) for a path whose last step is an unknown key."""
        keys = list(self._node(path[:-1]).get("properties", {}))
        close = difflib.get_close_matches(str(path[-1]), keys, n=1, cutoff=0.6)
        return (close[0] if close else "", ", ".join(keys))

    def _node(self, path: Path) -> dict[str, Any]:
        node = self._followed(self._schema)
        for step in path:
            if isinstance(step, int):
                node = node.get("items", {})
            else:
                free_keys: dict[str, Any] = next(iter(node.get("patternProperties", {}).values()), {})
                node = node.get("properties", {}).get(step, free_keys)
            node = self._followed(node)
        return node

    def _followed(self, node: dict[str, Any]) -> dict[str, Any]:
        """Behind references and `or null`, with what is said beside them."""
        beside = {key: value for key, value in node.items() if key not in ("$ref", "anyOf")}
        if "$ref" in node:
            return {**self._followed(self._schema["$defs"][node["$ref"].rsplit("/", 1)[1]]), **beside}
        if "anyOf" in node:
            choice = next(option for option in node["anyOf"] if option.get("type") != "null")
            return {**self._followed(choice), **beside}
        return node

    def _words(self, node: dict[str, Any]) -> str:
        if WORDS in node:
            return str(node[WORDS])
        if "enum" in node or "const" in node:
            return "one of: " + ", ".join(str(value) or '""' for value in node.get("enum", [node.get("const")]))
        kind = node.get("type")
        if kind == "array":
            return f"a list of at least {node['minItems']}" if "minItems" in node else "a list"
        if kind == "object":
            keys = ", ".join(node.get("properties", {}))
            return f"a mapping with the keys {keys}" if keys else "a mapping"
        if kind == "string":
            return "text (put a number, true or false in quotes)"
        return TYPE_WORDS[str(kind)] + _range(node)


def _range(node: dict[str, Any]) -> str:
    if "exclusiveMinimum" in node:
        return f" above {node['exclusiveMinimum']}, at most {node['maximum']:g}"
    return f" from {node['minimum']} to {node['maximum']}" if "minimum" in node else ""
