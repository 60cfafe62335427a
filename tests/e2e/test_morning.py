"""The demo, as a newcomer runs it: a process of its own, no terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = {"signal_to_desired_s", "signal_to_ready_s", "pods", "pods_running"}
NUMBERS |= {"pods_ever_pending_over_1s", "rejected_signals"}
AT_MOST_SECONDS = 480


@pytest.mark.long
def test_the_school_morning_goes_as_promised_and_its_report_says_so(tmp_path: Path) -> None:
    written = tmp_path / "demo-report.json"

    played = subprocess.run(
        [sys.executable, "-m", "demo.morning", "--name", "demo-tested", "--report", str(written)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=AT_MOST_SECONDS,
        check=False,
    )

    assert played.returncode == 0, played.stdout[-4000:] + played.stderr[-2000:]
    report = json.loads(written.read_text())
    assert set(report) == NUMBERS | {"reactive"}
    assert set(report["reactive"]) == NUMBERS
    assert (report["pods"], report["pods_running"], report["pods_ever_pending_over_1s"]) == (160, 160, 0)
    assert report["rejected_signals"] == 1
    assert report["reactive"]["pods_ever_pending_over_1s"] > 0
    assert report["signal_to_desired_s"] < report["reactive"]["signal_to_desired_s"]
