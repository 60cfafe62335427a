"""The teacher portal: a program that knows its classes and puts events, with nothing but boto3."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from demo.classroom import Classroom

SOURCE = "edu.example.portal"
DETAIL_TYPE = "Demand Signal"


def signals(rooms: Sequence[Classroom], region: str) -> list[dict[str, Any]]:
    """The details of the morning: one per class, and one that a bug in the portal has malformed."""
    good = [{"reference": room.reference, "region": region, "pool": room.pool, "pods": room.students} for room in rooms]
    return [*good, {"reference": "chem-lab", "region": region, "pods": "a few"}]


def put(events: Any, bus: str, details: Sequence[dict[str, Any]]) -> float:
    """Put them in one call and return the moment (Unix seconds) just before it. Raises RuntimeError on a refusal."""
    entries = [
        {"Source": SOURCE, "DetailType": DETAIL_TYPE, "EventBusName": bus, "Detail": json.dumps(detail)}
        for detail in details
    ]
    moment = time.time()
    answer = events.put_events(Entries=entries)
    if answer["FailedEntryCount"]:
        raise RuntimeError(f"the bus refused the portal's events: {answer['Entries']}")
    return moment
