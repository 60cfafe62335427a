"""A lock that is not of its requirements is found without a network."""

from __future__ import annotations

from pathlib import Path

from workshop import locks
from workshop.steps import ROOT


def test_the_locks_are_of_the_requirements_as_they_stand() -> None:
    assert locks.drifted() == []


def test_a_changed_pin_in_an_included_file_drifts_the_lock(tmp_path: Path) -> None:
    (tmp_path / "runtime.txt").write_text("boto3==1.0\n")
    (tmp_path / "all.txt").write_text("# ours\n-r runtime.txt\nrich==15  # for people\n")
    before = locks.digest_line(tmp_path / "all.txt")

    (tmp_path / "runtime.txt").write_text("# the same, with a comment\nboto3==1.0\n")
    assert locks.digest_line(tmp_path / "all.txt") == before

    (tmp_path / "runtime.txt").write_text("boto3==1.1\n")
    assert locks.digest_line(tmp_path / "all.txt") != before


def test_requirements_are_read_without_comments(tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text("# ours\n\nrich==15  # for people\n")

    assert locks.direct_requirements(tmp_path / "all.txt") == ["rich==15"]


def test_no_lock_names_where_packages_come_from() -> None:
    for lock in [*locks.LOCKS.values(), locks.UV_LOCK, ROOT / "package-lock.json"]:
        assert "://" not in lock.read_text(), lock
