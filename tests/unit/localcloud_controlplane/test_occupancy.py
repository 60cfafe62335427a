"""One cloud per name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localcloud.cloud import CloudRuns, Occupancy


def test_a_name_is_held_once_and_says_by_whom(tmp_path: Path) -> None:
    state_dir = tmp_path / "clouds" / "hub"
    held = Occupancy(state_dir)

    assert Occupancy.holder(state_dir) == os.getpid()
    with pytest.raises(CloudRuns):
        Occupancy(state_dir)

    held.release()
    assert Occupancy.holder(state_dir) is None
    Occupancy(state_dir).release()


def test_two_names_do_not_meet(tmp_path: Path) -> None:
    first, second = Occupancy(tmp_path / "one"), Occupancy(tmp_path / "two")

    first.release()
    second.release()
