"""Set-up steps: each is done once for its inputs, shows that it is alive, and says what to do when it fails.

Standard library only: this runs under the system's Python before anything is installed.
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
STAMPS = CACHE / "setup"
BEAT_SECONDS = 5.0
LOG_LINES_SHOWN = 20


class StepFailed(Exception):
    """A step did not succeed; the text says why."""


@dataclass(frozen=True)
class Step:
    """One thing to set up. It is done when its stamp holds the digest of its inputs and its product is there."""

    name: str
    title: str
    act: Callable[[], None]
    inputs: Sequence[Path]
    """Files whose content decides whether the step has to be done again."""
    product: Callable[[], bool]
    """Whether what the step makes is there."""
    remedy: str
    """What a person can do when the step fails."""
    settings: Sequence[str] = ()
    """Further facts (paths, versions) that decide whether the step has to be done again."""

    @property
    def stamp(self) -> Path:
        return STAMPS / f"{self.name}.done"

    def digest(self) -> str:
        """Of the inputs' names and contents, the settings, and where this clone stands (environments hold paths)."""
        content = hashlib.sha256(str(ROOT).encode())
        for path in self.inputs:
            content.update(b"\0" + str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
        for setting in self.settings:
            content.update(b"\0" + setting.encode())
        return content.hexdigest()

    def is_done(self) -> bool:
        return self.stamp.is_file() and self.stamp.read_text() == self.digest() and self.product()


def perform(step: Step) -> None:
    """Do the step and stamp it. Raises StepFailed."""
    say(f"{step.title} ...")
    started = time.monotonic()
    step.stamp.unlink(missing_ok=True)
    step.act()
    if not step.product():
        raise StepFailed("it ended without an error, but what it should have made is not there")
    step.stamp.write_text(step.digest())
    say(f"{step.title}: done in {time.monotonic() - started:.0f} s")


def run(name: str, command: Sequence[str | Path], environment: dict[str, str] | None = None) -> None:
    """Run a program with its output in `.cache/setup/<name>.log`; a line every five seconds shows that it is alive.

    Raises StepFailed with the end of the log.
    """
    log = STAMPS / f"{name}.log"
    arguments = [str(part) for part in command]
    with log.open("wb") as sink:
        try:
            process = subprocess.Popen(
                arguments, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise StepFailed(f"{arguments[0]} cannot be started: {error}") from error
        code = _watch(process, log)
    if code != 0:
        ending = "\n".join(f"    {line}" for line in _lines(log)[-LOG_LINES_SHOWN:])
        raise StepFailed(f"`{' '.join(arguments)}` ended with {code}:\n{ending}\n  the whole log: {log}")


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def _watch(process: subprocess.Popen[bytes], log: Path) -> int:
    started = time.monotonic()
    try:
        while True:
            try:
                return process.wait(timeout=BEAT_SECONDS)
            except subprocess.TimeoutExpired:
                latest = (_lines(log) or [""])[-1]
                say(f"  {time.monotonic() - started:4.0f} s  {latest[:90]}".rstrip())
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _lines(log: Path) -> list[str]:
    return [line.strip() for line in log.read_text(errors="replace").replace("\r", "\n").splitlines() if line.strip()]
