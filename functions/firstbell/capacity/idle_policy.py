"""When a pool may go to zero, as the operator's file says it. Times are local minutes of the day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Window:
    """From `begin_minute` to before `end_minute` of the day that it begins on. Where the end is not after the begin it
    is the next day's: 19:00 to 07:00 passes midnight, and an end of 0 is midnight itself."""

    begin_minute: int
    end_minute: int
    weekdays: tuple[int, ...] = ()
    """Days that it begins on, Monday = 0; of every week."""
    dates: tuple[date, ...] = ()
    """Days that it begins on, besides."""

    def begins_on(self, day: date) -> bool:
        return day.weekday() in self.weekdays or day in self.dates


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    """A pool's quiet windows, and how its nodes go in them."""

    timezone: str
    """IANA name. Windows are local to it, through every change of its clock."""
    quiet: tuple[Window, ...]
    """Windows in which idle nodes go."""
    up: tuple[Window, ...] = ()
    """Weekly windows that win over quiet ones."""
    holidays: tuple[date, ...] = ()
    """Days that are quiet from midnight to midnight, whatever the week says."""
    events: tuple[Window, ...] = ()
    """Dated windows that win over all of these."""
    idle_minutes: float = 15.0
    """How long a node has to be without user pods."""
    settle_seconds: float = 60.0
    """Least time between the cordon and the second look at a node."""


def idle_policy_from_document(document: Mapping[str, Any]) -> IdlePolicy:
    """Reads what `infra.operator_file.resolve` wrote."""
    return IdlePolicy(
        timezone=document["timezone"],
        quiet=tuple(_window(entry) for entry in document["quiet"]),
        up=tuple(_window(entry) for entry in document["up"]),
        holidays=tuple(date.fromisoformat(day) for day in document["holidays"]),
        events=tuple(_window(entry) for entry in document["events"]),
        idle_minutes=document["idle_minutes"],
        settle_seconds=document["settle_seconds"],
    )


def _window(entry: Mapping[str, Any]) -> Window:
    return Window(
        begin_minute=entry["begin_minute"],
        end_minute=entry["end_minute"],
        weekdays=tuple(entry.get("weekdays", ())),
        dates=tuple(date.fromisoformat(day) for day in entry.get("dates", ())),
    )
