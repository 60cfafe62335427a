"""The demo ends well only if the morning really went as promised."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from demo.verdict import Promise, Side, broken, report

OURS = Side(2.34567, 37.0, pods=160, pods_running=160, pods_ever_pending_over_1s=0, rejected_signals=1)
REACTIVE = Side(64.0, 95.5, pods=160, pods_running=160, pods_ever_pending_over_1s=160, rejected_signals=0)
PROMISE = Promise(pods=160, references=["bio101", "physics"], malformed=1)
READY = ["physics", "bio101"]


def test_a_morning_as_promised_has_nothing_broken() -> None:
    assert broken(PROMISE, OURS, REACTIVE, READY, ready_before_class=True) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"signal_to_desired_s": None}, "never raised"),
        ({"pods": 159}, "159 of 160 announced pods were created"),
        ({"pods_running": 120}, "120 of 160 announced pods are running"),
        ({"pods_ever_pending_over_1s": 3}, "3 announced pods waited longer"),
        ({"rejected_signals": 0}, "0 signals were rejected, and 1 were malformed"),
    ],
)
def test_each_number_that_is_wrong_breaks_it_in_words(change: dict[str, Any], words: str) -> None:
    said = broken(PROMISE, dataclasses.replace(OURS, **change), REACTIVE, READY, ready_before_class=True)

    assert len(said) == 1
    assert words in said[0]


def test_a_class_without_capacity_ready_is_named() -> None:
    assert broken(PROMISE, OURS, REACTIVE, ["bio101"], ready_before_class=True) == [
        "no Capacity Ready was heard for physics"
    ]


def test_nodes_that_come_after_the_students_break_it() -> None:
    assert broken(PROMISE, OURS, REACTIVE, READY, ready_before_class=False) == [
        "the nodes were not Ready before the first student came"
    ]


def test_an_unfinished_twin_breaks_the_comparison() -> None:
    unfinished = dataclasses.replace(REACTIVE, pods_running=154)

    assert (
        "154 of 160 pods run on the twin pool" in broken(PROMISE, OURS, unfinished, READY, ready_before_class=True)[0]
    )


def test_the_report_has_exactly_the_promised_keys() -> None:
    keys = {"signal_to_desired_s", "signal_to_ready_s", "pods", "pods_running"}
    keys |= {"pods_ever_pending_over_1s", "rejected_signals"}

    written = report(OURS, REACTIVE)

    assert set(written) == keys | {"reactive"}
    assert set(written["reactive"]) == keys
    assert written["signal_to_desired_s"] == 2.346
