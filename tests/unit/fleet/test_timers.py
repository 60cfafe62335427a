"""Timed transitions."""

from __future__ import annotations

import logging
import threading

import pytest

from localcloud.fleet.timers import Timers


def test_transitions_run_in_the_order_of_their_time() -> None:
    done: list[str] = []
    timers = Timers(lambda: 10.0)
    timers.at(9, lambda: done.append("second"))
    timers.at(5, lambda: done.append("first"))
    timers.at(11, lambda: done.append("later"))
    assert timers.run_due() == 11
    assert done == ["first", "second"]


def test_one_that_fails_does_not_end_the_others(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []
    timers = Timers(lambda: 10.0)
    timers.at(1, lambda: done.remove("what is not there"))
    timers.at(2, lambda: done.append("still"))
    with caplog.at_level(logging.ERROR):
        timers.run_due()
    assert done == ["still"]
    assert "a timed transition failed" in caplog.text


def test_the_thread_wakes_for_what_is_due_sooner_and_stops() -> None:
    timers, happened = Timers(), threading.Event()
    timers.after(3600, lambda: None)
    thread = threading.Thread(target=timers.run)
    thread.start()
    timers.after(0.01, happened.set)
    assert happened.wait(5)
    timers.stop()
    thread.join(5)
    assert not thread.is_alive()
