"""Children end with their parent, and a child that fails is quoted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.supervision import ChildFailed, Supervisor, _group_exists


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(tmp_path) as started:
        yield started


def await_end(pid: int) -> None:
    deadline = time.monotonic() + 20
    while _group_exists(pid) and not is_zombie(pid):
        assert time.monotonic() < deadline, f"{pid} still lives"
        time.sleep(0.05)


def is_zombie(pid: int) -> bool:
    """An orphan that ended stays visible until whoever inherited it has waited for it."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return state.startswith("Z")


def test_a_child_that_fails_is_quoted_with_its_status_and_the_end_of_its_log(supervisor: Supervisor) -> None:
    child = supervisor.start("etcd", ["sh", "-c", "echo address in use; exit 3"])

    with pytest.raises(ChildFailed, match=r"(?s)etcd ended with status 3.*address in use"):
        supervisor.await_ready(child, lambda: False, timeout_seconds=10)


def test_a_child_that_is_not_ready_in_time_is_quoted_too(supervisor: Supervisor) -> None:
    child = supervisor.start("etcd", ["sh", "-c", "echo waiting; exec sleep 60"])

    with pytest.raises(ChildFailed, match=r"(?s)not ready within 1 s.*waiting"):
        supervisor.await_ready(child, lambda: False, timeout_seconds=1.0)


def test_stopping_ends_children_and_their_children(supervisor: Supervisor, tmp_path: Path) -> None:
    grandchild = tmp_path / "pid"
    script = f"sleep 60 & echo $! > {grandchild}.new; mv {grandchild}.new {grandchild}; wait"
    child = supervisor.start("lambda", ["sh", "-c", script])
    supervisor.await_ready(child, grandchild.exists, timeout_seconds=10)

    supervisor.stop()

    assert child.exit_status() is not None
    assert is_gone(int(grandchild.read_text()))


def test_a_child_that_ignores_sigterm_is_killed(supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localcloud.supervision.GRACE_SECONDS", 0.2)
    child = supervisor.start("stubborn", ["sh", "-c", "trap '' TERM; echo set; while :; do sleep 0.1; done"])
    supervisor.await_ready(child, lambda: "set" in child.log.read_text(), timeout_seconds=10)

    supervisor.stop()

    assert child.exit_status() == -9


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(1)", "raise SystemExit"])
def test_whatever_ends_the_parent_its_children_end(tmp_path: Path, end: str) -> None:
    parent = f"""
import os, pathlib
from localcloud.supervision import Supervisor
child = Supervisor(pathlib.Path({str(tmp_path)!r})).start("sleeper", ["sleep", "60"])
print(child.pid, flush=True)
{end}
"""
    answer = subprocess.run([sys.executable, "-c", parent], capture_output=True, text=True, check=False)

    await_end(int(answer.stdout))


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return is_zombie(pid)
