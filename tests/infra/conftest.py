"""Synthesized templates, without bundling."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parents[2]
NODE = ROOT / ".cache" / "bin" / "node"
if NODE.exists():  # set-up put one there that is new enough; a bare `pytest` may find an older one on PATH
    os.environ.setdefault("JSII_NODE", str(NODE))
os.environ.setdefault("JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION", "1")

if TYPE_CHECKING:
    from tests.infra.stacks import Synthesized


@pytest.fixture(scope="session")
def shipped() -> Synthesized:
    """The stack of the firstbell.yaml in the repository."""
    from tests.infra.stacks import synthesize

    return synthesize((ROOT / "firstbell.yaml").read_text(encoding="utf-8"))
