"""The report of the morning, and what of the promise did not hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Side:
    """One pool's morning in numbers. Without a signal, its clock starts at the first student's pod."""

    signal_to_desired_s: float | None
    """To the last raise of the group's desired capacity; None where it was never raised."""
    signal_to_ready_s: float | None
    """To the last Ready node; None where none came."""
    pods: int
    pods_running: int
    pods_ever_pending_over_1s: int
    rejected_signals: int


@dataclass(frozen=True)
class Promise:
    """What the morning was announced as, against which it is held."""

    pods: int
    references: Sequence[str]
    malformed: int


def report(ours: Side, reactive: Side) -> dict[str, Any]:
    return {**_rounded(ours), "reactive": _rounded(reactive)}


def broken(promise: Promise, ours: Side, reactive: Side, ready: Sequence[str], ready_before_class: bool) -> list[str]:
    """What did not go as promised, in words; empty when it really went so. `ready`: references told Capacity Ready."""
    missing = sorted(set(promise.references) - set(ready))
    claims = [
        (ours.signal_to_desired_s is not None, "the group's desired capacity was never raised for the signals"),
        (not missing, f"no Capacity Ready was heard for {', '.join(missing)}"),
        (ready_before_class, "the nodes were not Ready before the first student came"),
        (ours.pods == promise.pods, f"{ours.pods} of {promise.pods} announced pods were created"),
        (ours.pods_running == promise.pods, f"{ours.pods_running} of {promise.pods} announced pods are running"),
        (
            ours.pods_ever_pending_over_1s == 0,
            f"{ours.pods_ever_pending_over_1s} announced pods waited longer than a second for their node",
        ),
        (
            ours.rejected_signals == promise.malformed,
            f"{ours.rejected_signals} signals were rejected, and {promise.malformed} were malformed",
        ),
        (
            reactive.pods_running == promise.pods,
            f"{reactive.pods_running} of {promise.pods} pods run on the twin pool; the comparison is not whole",
        ),
    ]
    return [words for holds, words in claims if not holds]


def _rounded(side: Side) -> dict[str, Any]:
    values = dataclasses.asdict(side)
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in values.items()}
