"""What a person sees of the morning: two pools, their pods, and what was said. Filled by several threads."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

LINES_KEPT = 200


@dataclass(frozen=True)
class Line:
    """Something that happened: when (Unix seconds), who says it, what."""

    at: float
    who: str
    text: str


@dataclass
class PoolBoard:
    """One pool as the group authority and the API server show it."""

    name: str
    title: str
    desired: int = 0
    nodes: set[str] = field(default_factory=set)
    ready_at: dict[str, float] = field(default_factory=dict)
    """Node -> when the API server first showed it Ready (Unix seconds)."""
    bound: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    pods: set[str] = field(default_factory=set)

    @property
    def waiting(self) -> int:
        return len(self.pods - self.bound)


@dataclass
class Board:
    """The whole picture. `heard` is called for each new line, on the thread that says it."""

    pools: dict[str, PoolBoard]
    heard: Callable[[Line], None] | None = None
    stages: dict[str, float] = field(default_factory=dict)
    """Stage -> when it was reached (Unix seconds), in the order reached."""
    lines: deque[Line] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))
    clock: str = "before school"
    lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, who: str, text: str) -> None:
        line = Line(time.time(), who, text)
        with self.lock:
            self.lines.append(line)
        if self.heard is not None:
            self.heard(line)

    def reach(self, stage: str, at: float | None = None) -> None:
        """Note a stage the first time that it is reached."""
        with self.lock:
            self.stages.setdefault(stage, time.time() if at is None else at)

    def seconds(self, first: str, then: str) -> float | None:
        """From one stage to another, None while one is not reached."""
        with self.lock:
            begin, end = self.stages.get(first), self.stages.get(then)
        return None if begin is None or end is None else end - begin
