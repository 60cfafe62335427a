"""What every part of the operator's file is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Entry(BaseModel):
    """A part of the operator's file: no unknown keys, no values turned into another type, not changed afterwards."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, populate_by_name=True)
