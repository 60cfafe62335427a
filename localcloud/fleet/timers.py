"""Timed transitions: a heap that one thread works off while it holds the fleet's lock."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Timers:
    """What is to happen when. `lock` guards the whole fleet; every callback runs with it held."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._stopped = False

    def at(self, when: float, action: Callable[[], None]) -> None:
        with self.lock:
            heapq.heappush(self._heap, (when, next(self._order), action))
            self._changed.notify()

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        self.at(self.clock() + seconds, action)

    def run_due(self) -> float | None:
        """Do what is due by the clock; return the time of what comes next, None when nothing does."""
        with self.lock:
            while self._heap and self._heap[0][0] <= self.clock():
                _, _, action = heapq.heappop(self._heap)
                try:
                    action()
                except Exception:  # one failed transition must not end all others; what it left is reconciled again
                    logger.exception("a timed transition failed")
            return self._heap[0][0] if self._heap else None

    def run(self) -> None:
        """Work until `stop`."""
        with self.lock:
            while not self._stopped:
                following = self.run_due()
                self._changed.wait(None if following is None else max(0.0, following - self.clock()))

    def stop(self) -> None:
        with self.lock:
            self._stopped = True
            self._changed.notify()
