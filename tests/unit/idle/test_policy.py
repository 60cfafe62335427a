"""What the idle function gets of the operator's file."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from firstbell.capacity.idle_policy import IdlePolicy, Window
from firstbell.settings import parse_cluster
from infra.operator_file import load, resolve
from tests.infra import documents

if TYPE_CHECKING:
    from pathlib import Path


def read(tmp_path: Path, **pool: Any) -> IdlePolicy | None:
    path = tmp_path / "firstbell.yaml"
    path.write_text(documents.text(documents.cluster(pools=[documents.pool(**pool)])), encoding="utf-8")
    return parse_cluster(json.loads(json.dumps(resolve(load(path), "hub")))).pools[0].idle


def test_every_setting_arrives(tmp_path: Path) -> None:
    idle = {
        "timezone": "Pacific/Auckland",
        "quiet": [{"days": "Mon-Fri", "from": "19:00", "to": "07:30"}],
        "up": [{"days": "Wed", "from": "20:00", "to": "00:00"}],
        "holidays": ["2026-12-24"],
        "events": [{"date": "2026-12-31", "from": "22:00", "to": "02:00"}],
        "idle_minutes": 5,
        "settle_seconds": 90,
    }
    assert read(tmp_path, idle=idle) == IdlePolicy(
        timezone="Pacific/Auckland",
        quiet=(Window(1140, 450, weekdays=(0, 1, 2, 3, 4)),),
        up=(Window(1200, 0, weekdays=(2,)),),
        holidays=(date(2026, 12, 24),),
        events=(Window(1320, 120, dates=(date(2026, 12, 31),)),),
        idle_minutes=5,
        settle_seconds=90,
    )


def test_a_pool_without_it_never_goes(tmp_path: Path) -> None:
    assert read(tmp_path) is None


@pytest.mark.parametrize(
    ("days", "weekdays"),
    [
        ("Mon", (0,)),
        ("Sat,Sun", (5, 6)),
        ("Sun-Fri", (0, 1, 2, 3, 4, 6)),
        ("Fri-Mon", (0, 4, 5, 6)),
        ("Mon-Sun", (0, 1, 2, 3, 4, 5, 6)),
        ("Mon-Wed,Tue-Thu", (0, 1, 2, 3)),
    ],
)
def test_case_56_days_are_read_as_a_person_reads_them(tmp_path: Path, days: str, weekdays: tuple[int, ...]) -> None:
    idle = read(tmp_path, idle={"timezone": "UTC", "quiet": [{"days": days, "from": "19:00", "to": "07:00"}]})
    assert idle is not None
    assert idle.quiet[0].weekdays == weekdays
