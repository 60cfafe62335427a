"""Child processes that end with their parent: in order when it stops, and at once when it is killed.

One mechanism on Linux and macOS: a small guard process reads a pipe whose writing end only the parent holds. Each
child first writes its own process id into that pipe and then becomes the real program, so there is no moment in which
a child runs that the guard does not know of. When the pipe ends (the parent is gone, whatever killed it), the guard
ends the process group of every child. Children and guard run in sessions of their own, so Ctrl-C reaches only the
parent, which then stops them in order.

This file is also the guard's program, so it imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

POLL_SECONDS = 0.05
GRACE_SECONDS = 5.0
TAIL_LINES = 15

# Register with the guard (standard input is its pipe), then become the program with an empty standard input.
_REGISTER_THEN_BECOME = 'echo "+$$" >&0; exec "$@" </dev/null'


class ChildFailed(Exception):
    """A child ended by itself or did not become ready in time; carries the end of its log."""


class Child:
    """A running program, its log, and the process group that it leads."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_status(self) -> int | None:
        """The exit status (negative = signal number), None while it runs."""
        return self._process.poll()

    def raise_if_ended(self) -> None:
        """Raise ChildFailed if the program is no longer running."""
        status = self.exit_status()
        if status is not None:
            raise ChildFailed(f"{self.name} ended with status {status}\n{self.log_tail()}")

    def end(self) -> None:
        """Ask the process group to end, wait for the program, and kill what is left of the group."""
        _signal_group(self.pid, signal.SIGTERM)
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            _signal_group(self.pid, signal.SIGKILL)
            self._process.wait()
        _signal_group(self.pid, signal.SIGKILL)

    def log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return "\n".join([f"the last lines of {self.log}:", *(f"  {line}" for line in lines)])


class Supervisor:
    """Starts children, waits until they are ready, and stops them in the reverse order."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._children: list[Child] = []
        logs.mkdir(parents=True, exist_ok=True)
        reading, self._registry = os.pipe()
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__], stdin=reading, start_new_session=True, close_fds=True
        )
        os.close(reading)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def children(self) -> tuple[Child, ...]:
        return tuple(self._children)

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> Child:
        """Start a program; what it prints goes to <logs>/<name>.log."""
        log = self._logs / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _REGISTER_THEN_BECOME, name, *map(str, command)],
                stdin=self._registry,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
                cwd=folder,
            )
        child = Child(name, process, log)
        self._children.append(child)
        return child

    def await_ready(self, child: Child, is_ready: Callable[[], bool], *, timeout_seconds: float) -> None:
        """Return when `is_ready` answers True. Raises ChildFailed when the child ends first or the time is over."""
        deadline = time.monotonic() + timeout_seconds
        while not is_ready():
            child.raise_if_ended()
            if time.monotonic() > deadline:
                raise ChildFailed(f"{child.name} was not ready within {timeout_seconds:.0f} s\n{child.log_tail()}")
            time.sleep(POLL_SECONDS)

    def raise_if_any_ended(self) -> None:
        for child in self._children:
            child.raise_if_ended()

    def stop(self) -> None:
        """End every child, the youngest first, and then the guard. Calling it again does nothing."""
        for child in reversed(self._children):
            child.end()
            with contextlib.suppress(OSError):  # the guard may have been killed; then there is nobody to tell
                os.write(self._registry, f"-{child.pid}\n".encode())
        self._children.clear()
        if self._registry >= 0:
            os.close(self._registry)
            self._registry = -1
            self._guard.wait()


def _signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS says "not permitted" of a group of zombies
        os.killpg(leader, number)


def guard(registrations: Iterable[str]) -> None:
    """Remember who registered (`+pid`) and was stopped (`-pid`); when the lines end, end those who are left."""
    alive: dict[int, None] = {}
    for line in registrations:
        pid = int(line[1:])
        if line.startswith("+"):
            alive[pid] = None
        else:
            alive.pop(pid, None)  # a child that was stopped at once may not have come to register
    for pid in reversed(alive):
        _signal_group(pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while any(map(_group_exists, alive)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for pid in alive:
        _signal_group(pid, signal.SIGKILL)


def _group_exists(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    guard(iter(sys.stdin.readline, ""))
