"""The table of metrics and the code that emits them say the same."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import firstbell
from firstbell.telemetry import METRICS

SOURCES = Path(next(iter(firstbell.__path__)))
EMITTING = {"emit", "count"}
"""Telemetry.emit, and Pass.count, whose figures a drain's batch emits at its end."""


def calls() -> Iterator[ast.Call]:
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            name = (
                called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
            )
            if isinstance(node, ast.Call) and name in EMITTING:
                yield node


def emitted() -> dict[str, set[frozenset[str]]]:
    """Metric -> the sets of dimensions that it is emitted with, as written in the source."""
    found: dict[str, set[frozenset[str]]] = defaultdict(set)
    for call in calls():
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value[:1].isupper():
            found[first.value].add(frozenset(keyword.arg for keyword in call.keywords if keyword.arg))
    return dict(found)


def test_every_metric_of_the_table_is_emitted_somewhere_with_its_dimensions_and_no_other_is() -> None:
    assert emitted() == {name: {frozenset(metric.dimensions)} for name, metric in METRICS.items()}


def test_no_metric_has_a_dimension_that_names_a_person_or_an_instance() -> None:
    """A reference may name a course, and an instance is a metric of its own: neither can be forgotten."""
    assert {dimension for metric in METRICS.values() for dimension in metric.dimensions} == {
        "pool",
        "kind",
        "reason",
        "stage",
    }
