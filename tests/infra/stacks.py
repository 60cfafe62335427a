"""Synthesizes stacks of operator's files for tests."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import App

from infra.names import stack_name
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


def new_app(folder: Path) -> App:
    """An app as cdk.json makes it, that writes to `folder` and bundles nothing."""
    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    return App(context={**context, "aws:cdk:bundling-stacks": []}, outdir=str(folder))


def synthesize(text: str, cluster: str = "hub") -> Synthesized:
    """The stack of the named cluster of an operator's file."""
    with tempfile.TemporaryDirectory() as folder:
        app = new_app(Path(folder))
        stacks = add_stacks(app, text)
        stack = next(s for s in stacks if s.stack_name == stack_name(cluster))
        return Synthesized(app.synth().get_stack_by_name(stack.stack_name).template)


def add_stacks(app: App, text: str) -> list[FirstbellStack]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "firstbell.yaml"
        path.write_text(text, encoding="utf-8")
        file = load(path)
    return [FirstbellStack(app, file=file, cluster=cluster, target=LAMBDA) for cluster in file.clusters]
