"""Two files of JSON lines that outlive every question: each API call, and each step of an instance's life.

`fleet-calls.jsonl`: {"time", "service", "action", "parameters", "access_key", "error"} (error null where accepted).
`fleet-events.jsonl`: {"time", "event", "group", "instance_id", ...}; events: launched, running, in-service, joined,
waiting, hook-completed, unhealthy, terminating, shutting-down, terminated, left, detached, launch-failed, spot-warning,
rebalance-recommendation. Times are Unix seconds.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = "fleet-calls.jsonl"
EVENTS = "fleet-events.jsonl"


class Journal:
    """Appends whole lines, so that a reader never sees half of one."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        self._lock = threading.Lock()
        self._calls = (folder / CALLS).open("a", buffering=1)
        self._events = (folder / EVENTS).open("a", buffering=1)

    def call(self, service: str, action: str, parameters: dict[str, Any], access_key: str, error: str | None) -> None:
        line = {
            "time": self._clock(),
            "service": service,
            "action": action,
            "parameters": parameters,
            "access_key": access_key,
            "error": error,
        }
        with self._lock:
            self._calls.write(json.dumps(line, default=str) + "\n")

    def event(self, event: str, group: str, instance_id: str, **details: Any) -> None:
        line = {"time": self._clock(), "event": event, "group": group, "instance_id": instance_id, **details}
        with self._lock:
            self._events.write(json.dumps(line, default=str) + "\n")

    def close(self) -> None:
        self._calls.close()
        self._events.close()
