"""The operator's command line against the deployed stack, as a person types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localcloud.deploy import apply_manifest
from tests.e2e.cluster_api import await_value
from tests.e2e.deployed import ROOT, Deployed

POOL = "notebook-4"


@pytest.fixture
def state_dir(school: Deployed) -> Path:
    return school.cloud.state_dir


def firstbell(state_dir: Path, *arguments: str, code: int | None = 0) -> dict[str, Any]:
    """What a command prints with `--json`. It finds AWS, the cluster and the operator's file by `--local` alone.

    It has to end with `code`, if one is given."""
    ran = subprocess.run(
        [sys.executable, "-m", "cli", *arguments, "--local", str(state_dir), "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert code in (None, ran.returncode), (ran.returncode, ran.stdout, ran.stderr)
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def reservation(state_dir: Path, reference: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        r for r in firstbell(state_dir, "status")["reservations"] if r["reference"] == reference
    )
    return found


def test_an_operator_plans_signals_looks_and_cancels(school: Deployed, state_dir: Path) -> None:
    asked = ("--pods", "20", "--reference", "cli101", "--pool", POOL)
    before = school.group(POOL)["DesiredCapacity"]
    plan = firstbell(state_dir, "plan", *asked)
    assert plan["desired_before"] == before
    assert school.group(POOL)["DesiredCapacity"] == before

    ready = firstbell(state_dir, "signal", *asked, "--wait", "--timeout-seconds", "150")
    assert ready["answer"] == "ready"
    assert school.group(POOL)["DesiredCapacity"] == plan["desired_after"]

    found = reservation(state_dir, "cli101")
    assert (found["phase"], found["placed_pods"]) == ("live", 20)
    assert found["waits_for"].startswith("its pods: 0 have arrived")

    assert firstbell(state_dir, "cancel", "cli101", "--wait")["answer"] == "cancelled"
    assert reservation(state_dir, "cli101")["phase"] == "cancelled"


def test_a_pause_holds_every_write_until_resume(school: Deployed, state_dir: Path) -> None:
    before = school.group("notebook-5")["DesiredCapacity"]
    firstbell(state_dir, "pause")
    try:
        asked = ("--pods", "300", "--reference", "cli202", "--pool", "notebook-5")
        assert firstbell(state_dir, "signal", *asked, "--wait", code=4)["answer"] == "short"
        assert school.outcomes("Capacity Short", reference="cli202")[0]["reason"] == "paused"
        assert school.group("notebook-5")["DesiredCapacity"] == before
        assert "Firstbell is paused" in reservation(state_dir, "cli202")["waits_for"]
        firstbell(state_dir, "cancel", "cli202", "--wait")
    finally:
        firstbell(state_dir, "resume")
    assert not firstbell(state_dir, "status")["paused"]


@pytest.mark.disruptive
def test_doctor_asks_as_each_function_s_role_and_names_the_manifest(school: Deployed, state_dir: Path) -> None:
    """The tick's binding goes: its role's own token is let in, and may do nothing."""
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/firstbell-tick"
    # Soon after a deployment the tick has not run; and other tests may leave dead letters in the shared cloud.
    await_value(
        "nothing is wrong", lambda: wrong(state_dir) - {"queue"}, lambda checks: not checks, timeout_seconds=120
    )
    assert school.cluster.call("DELETE", binding).status == 200
    try:
        # The API server's authorizer learns of the deletion a moment later.
        await_value("doctor finds it", lambda: wrong(state_dir), lambda checks: "rbac" in checks)
        examined = firstbell(state_dir, "doctor", code=1)
    finally:
        apply_manifest(school.cloud, ROOT / "infra" / "rbac.yaml")
    (finding,) = (f for f in examined["findings"] if f["check"] == "rbac")
    assert finding["subject"] == "firstbell-hub-tick"
    assert finding["problem"].startswith("may not list nodes, list pods")
    assert finding["remedy"] == "kubectl apply -f infra/rbac.yaml"


def wrong(state_dir: Path) -> set[str]:
    findings = firstbell(state_dir, "doctor", code=None)["findings"]
    return {finding["check"] for finding in findings if finding["severity"] != "unchecked"}
