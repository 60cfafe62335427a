"""The command `firstbell` that set-up leaves behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from workshop import bootstrap


def test_the_command_runs_from_any_folder_without_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "COMMAND", tmp_path / "firstbell")
    bootstrap.write_command()
    ran = subprocess.run(
        [tmp_path / "firstbell", "density", "--offline", "--instance-type", "m5.large", "--pod", "cpu=500m,memory=2Gi"],
        cwd=tmp_path,
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("m5.large: 3 a node")
