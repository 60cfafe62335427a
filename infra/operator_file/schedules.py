"""When a pool may go to zero, as the operator's file says it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from infra.operator_file.base import Entry
from infra.operator_file.fields import Days, LocalDate, LocalTime, TimeZone


class Window(Entry):
    """A window of local time. It may pass midnight; its days are those on which it begins."""

    begin: Annotated[LocalTime, Field(alias="from", description="local time at which it begins")]
    end: Annotated[LocalTime, Field(alias="to", description="local time at which it ends; 00:00 is midnight")]


class WeeklyWindow(Window):
    """A window of every week."""

    days: Annotated[Days, Field(description="days on which it begins")]


class DatedWindow(Window):
    """A window of one day."""

    date: Annotated[LocalDate, Field(description="day on which it begins")]


class Idle(Entry):
    """When the pool's idle nodes go. Outside its quiet windows nothing of the pool is removed."""

    timezone: Annotated[TimeZone, Field(description="zone that the times below are local to")]
    quiet: Annotated[list[WeeklyWindow], Field(min_length=1, description="windows in which idle nodes go")]
    up: list[WeeklyWindow] = Field(default=[], description="windows that win over quiet ones")
    holidays: list[LocalDate] = Field(default=[], description="days that are quiet from 00:00 to 24:00")
    events: list[DatedWindow] = Field(default=[], description="dated windows that win over quiet ones and holidays")
    idle_minutes: Annotated[int, Field(ge=0, le=1440, description="how long a node has been without user pods")] = 15
    settle_seconds: Annotated[
        int, Field(ge=0, le=3600, description="least time between the cordon and the second look at a node")
    ] = 60
