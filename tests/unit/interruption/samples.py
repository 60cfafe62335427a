"""Recorded messages of the interruption queue, in AWS's documented shapes with made-up ids."""

from __future__ import annotations

from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "samples" / "interruption"


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.json").read_text()


def sample_names() -> list[str]:
    return sorted(path.stem for path in SAMPLES.glob("*.json"))
