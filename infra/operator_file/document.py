"""Reads YAML as a person means it, and remembers where everything stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from infra.operator_file.rules import Path


MERGE = "tag:yaml.org,2002:merge"
TEXT = "tag:yaml.org,2002:str"


class _Loader(yaml.SafeLoader):
    """YAML 1.2's core schema: PyYAML's 1.1 reads 19:00 as 1140, `no` as false, a date as a date object."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first_characters in (
    ("bool", r"true|false", "tf"),
    ("null", r"null|~|", "n~"),
    ("int", r"-?(0|[1-9]\d*)", "-0123456789"),
    ("float", r"-?(0|[1-9]\d*)\.\d+", "-0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(  # type: ignore[no-untyped-call]  # untyped in types-PyYAML
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), [*_first_characters, ""]
    )


class UnreadableDocument(Exception):
    """The text is not YAML. `line` counts from 1."""

    def __init__(self, line: int, complaint: str) -> None:
        super().__init__(complaint)
        self.line = line
        self.complaint = complaint


class Document:
    """A parsed text: its value, and the line of every path in it."""

    def __init__(self, text: str) -> None:
        """Raises UnreadableDocument, also for a key that stands twice (YAML's parser would keep the last)."""
        try:
            loader = _Loader(text)
        except yaml.YAMLError as error:
            raise UnreadableDocument(1, " ".join(str(error).split())) from error
        try:
            self._root = loader.get_single_node()
            self.value: Any = None
            if self._root is not None:
                _make_keys_text(self._root)
                self.value = loader.construct_document(self._root)  # type: ignore[no-untyped-call]
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise UnreadableDocument(mark.line + 1 if mark else 1, error.problem or "is not YAML") from error
        except yaml.YAMLError as error:
            raise UnreadableDocument(1, " ".join(str(error).split())) from error
        except RecursionError as error:
            raise UnreadableDocument(1, "an alias contains itself") from error
        finally:
            loader.dispose()  # type: ignore[no-untyped-call]

    def line(self, path: Path) -> int:
        """The line, from 1, of the path or of the nearest part of it that is there."""
        node, line = self._root, 1
        for step in path:
            if isinstance(node, yaml.MappingNode):
                # Merged keys (<<) stand before the mapping's own once the document is constructed.
                entry = next(((key, value) for key, value in reversed(node.value) if key.value == step), None)
                if entry is None:
                    return line
                line, node = entry[0].start_mark.line + 1, entry[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                line = node.start_mark.line + 1
            else:
                return line
        return line


def _make_keys_text(node: yaml.Node) -> None:
    """Keys are what was written, also 8 or true. Raises MarkedYAMLError for one that stands twice or is no text."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key is not text", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} stands twice", problem_mark=key.start_mark)
            seen.add(key.value)
            if key.tag != MERGE:
                key.tag = TEXT
            _make_keys_text(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _make_keys_text(value)
