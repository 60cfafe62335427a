"""Loads the operator's file, or says everything that is wrong with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from infra.operator_file.document import Document, UnreadableDocument
from infra.operator_file.models import OperatorFile
from infra.operator_file.rules import Path, Problem, broken_rules
from infra.operator_file.words import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path as FilePath

    from pydantic_core import ErrorDetails

VALUE_SHOWN_CHARACTERS = 60


class WrongFile(Exception):
    """The operator's file is wrong. The text has a line for every error: file, line, path, value, what is allowed."""


def load(path: FilePath) -> OperatorFile:
    """The file at `path`. Raises WrongFile."""
    try:
        document = Document(path.read_text(encoding="utf-8"))
    except UnreadableDocument as error:
        raise WrongFile(f"{path}:{error.line}: {error.complaint}; allowed: YAML 1.2") from error
    except (OSError, UnicodeDecodeError) as error:
        raise WrongFile(f"{path}: cannot be read: {error}; allowed: a YAML file, see firstbell.yaml") from error
    problems = list(broken_rules(document.value))
    try:
        loaded = OperatorFile.model_validate(document.value)
    except ValidationError as error:
        problems += _wrong_values(error, document.value)
        loaded = None
    if problems:
        lines = sorted({(document.line(p.path), _line(path, document.line(p.path), p)) for p in problems})
        raise WrongFile("\n".join(text for _, text in lines))
    assert loaded is not None  # noqa: S101  # without a problem it was validated
    return loaded


def spelled(path: Path) -> str:
    """clusters[0].pools[2].pod.memory"""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not step or "." in step or "/" in step:
            text += f"[{step!r}]"
        else:
            text += f".{step}" if text else step
    return text or "(top)"


def _line(file: FilePath, line: int, problem: Problem) -> str:
    """One line, whatever characters keys and values have."""
    text = f"{file}:{line}: {spelled(problem.path)}: {problem.complaint}; allowed: {problem.allowed}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _wrong_values(error: ValidationError, document: Any) -> Iterator[Problem]:
    vocabulary = Vocabulary()
    told: set[Path] = set()
    for detail in error.errors(include_url=False):
        path = _existing(detail, document)
        if path not in told:
            told.add(path)
            yield _problem(detail, path, document, vocabulary)


def _existing(detail: ErrorDetails, document: Any) -> Path:
    """The error's path without what the validator adds to it (a union's branch, `[key]`)."""
    path: Path = detail["loc"]
    if detail["type"] in ("missing", "extra_forbidden"):
        return path
    node: Any = document
    depth = 0
    for step in path:
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            break
        depth += 1
    return path[:depth]


def _problem(detail: ErrorDetails, path: Path, document: Any, vocabulary: Vocabulary) -> Problem:
    if detail["type"] == "missing":
        return Problem(path, "is missing", vocabulary.allowed(path))
    if detail["type"] == "extra_forbidden":
        meant, keys = vocabulary.misspelt(path)
        return Problem(path, "unknown key" + (f"; did you mean {meant}?" if meant else ""), keys)
    if detail["loc"][-1:] == ("[key]",):
        return Problem(path, f"{path[-1]!r} is not allowed as a key", vocabulary.allowed_key(path))
    return Problem(path, f"{_shown(_value(path, document))} is not allowed", vocabulary.allowed(path))


def _value(path: Path, document: Any) -> Any:
    """What the person wrote: the validator may have seen a number as text."""
    for step in path:
        document = document[step]
    return document


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str) if value is not None else "nothing"
    return text if len(text) <= VALUE_SHOWN_CHARACTERS else f"{text[:VALUE_SHOWN_CHARACTERS]}..."
