"""Synthesizes stacks of operator's files for tests."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import App, IPolicyValidationPlugin, Validations

from infra.operator_file import load
from infra.stack import FirstbellStack
from infra.wheels import LAMBDA

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Synthesized:
    """One stack's template."""

    template: dict[str, Any]

    def of_type(self, resource_type: str) -> dict[str, dict[str, Any]]:
        """Logical id -> properties."""
        return {
            logical_id: resource.get("Properties", {})
            for logical_id, resource in self.template["Resources"].items()
            if resource["Type"] == resource_type
        }

    def one(self, resource_type: str, **properties: Any) -> dict[str, Any]:
        """The properties of the only resource of the type that has these properties."""
        found = [
            entry
            for entry in self.of_type(resource_type).values()
            if all(entry.get(name) == value for name, value in properties.items())
        ]
        assert len(found) == 1, f"{len(found)} of {resource_type} with {properties}"
        return found[0]

    def logical_id(self, resource_type: str, **properties: Any) -> str:
        return next(
            logical_id
            for logical_id, entry in self.of_type(resource_type).items()
            if all(entry.get(name) == value for name, value in properties.items())
        )


def new_app() -> App:
    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    return App(context={**context, "aws:cdk:bundling-stacks": []})


def synthesize(text: str, cluster: str | None = None) -> Synthesized:
    """The stack of the named (else first) cluster of an operator's file."""
    app = new_app()
    name = add_stacks(app, text, cluster)
    return Synthesized(app.synth().get_stack_by_name(name).template)


def validate(text: str, plugin_class: type[IPolicyValidationPlugin]) -> Path:
    """Synthesizes all stacks under a validation plugin and returns the report, written whether or not it found any."""
    app = new_app()
    add_stacks(app, text)
    Validations.of(app).add_plugins(plugin_class(app))  # type: ignore[call-arg]  # rule packs take a scope
    app.synth()
    return Path(app.outdir) / "validation-report.json"


def add_stacks(app: App, text: str, cluster: str | None = None) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "firstbell.yaml"
        path.write_text(text, encoding="utf-8")
        file = load(path)
    for entry in file.clusters:
        FirstbellStack(app, file=file, cluster=entry, target=LAMBDA)
    return f"firstbell-{cluster or file.clusters[0].name}"
