"""Puts a CDK app onto a local cloud with the ordinary CDK command line, as it is put onto AWS."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from localcloud.cloud import ACCOUNT, REGION, LocalCloud
from localcloud.controlplane.build import find_kubectl

BOOTSTRAPPED = "cdk-bootstrapped"
TAIL_LINES = 25
# Each way of the command line to call home; a local cloud has nothing to tell, and a train has no network.
_QUIET = ("--no-notices", "--no-version-reporting", "--no-color")


class DeploymentFailed(Exception):
    """A program ended with an error; carries the command and the end of what it printed."""


def deploy(
    cloud: LocalCloud, app_folder: Path, context: Mapping[str, str], report: Callable[[str], None] = lambda line: None
) -> dict[str, dict[str, str]]:
    """Bootstrap the cloud's account (once per cloud), synthesise the app in `app_folder` and deploy all its stacks.

    Returns stack name -> output name -> value. Raises DeploymentFailed. `context` is what `cdk -c key=value` takes.
    """
    outputs = cloud.state_dir / "cdk-outputs.json"
    _bootstrap(cloud, app_folder, report)
    given = [argument for key, value in context.items() for argument in ("--context", f"{key}={value}")]
    arguments = ["deploy", "--all", "--app", f"{sys.executable} app.py", "--output", str(cloud.state_dir / "cdk.out")]
    arguments += ["--require-approval", "never", "--outputs-file", str(outputs), *given]
    _cdk(cloud, app_folder, "deploy", arguments, report)
    written: dict[str, dict[str, str]] = json.loads(outputs.read_text())
    return written


def apply_manifest(cloud: LocalCloud, manifest: Path) -> None:
    """`kubectl apply` a file as the cluster's administrator. Raises DeploymentFailed."""
    command = [str(find_kubectl()), "apply", "--filename", str(manifest)]
    _run(command, cloud.environment(), manifest.parent, cloud.state_dir / "logs" / "kubectl.log")


def _bootstrap(cloud: LocalCloud, app_folder: Path, report: Callable[[str], None]) -> None:
    mark = cloud.state_dir / BOOTSTRAPPED
    if mark.exists():
        return
    # Outside the app's folder, so that its cdk.json does not make this synthesise the app too.
    _cdk(cloud, app_folder, "bootstrap", ["bootstrap", f"aws://{ACCOUNT}/{REGION}"], report, folder=cloud.state_dir)
    mark.touch()


def _cdk(
    cloud: LocalCloud,
    app_folder: Path,
    step: str,
    arguments: Sequence[str],
    report: Callable[[str], None],
    *,
    folder: Path | None = None,
) -> None:
    started = time.monotonic()
    environment = cloud.environment()
    path = [str(app_folder / ".cache/bin"), str(app_folder / "node_modules/.bin"), str(Path(sys.executable).parent)]
    environment["PATH"] = os.pathsep.join([*path, environment.get("PATH", os.defpath)])
    environment["CDK_DISABLE_CLI_TELEMETRY"] = "true"
    program = shutil.which("cdk", path=environment["PATH"])
    if program is None:
        raise DeploymentFailed("the CDK command line is not there; `make setup` installs it")
    command = [program, *arguments, *_QUIET]
    _run(command, environment, folder or app_folder, cloud.state_dir / "logs" / f"cdk-{step}.log")
    report(f"cdk {step} is done ({time.monotonic() - started:.0f} s)")


def _run(command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path) -> None:
    with log.open("ab") as output:
        ended = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if ended.returncode != 0:
        tail = "\n".join(f"  {line}" for line in log.read_text(errors="replace").splitlines()[-TAIL_LINES:])
        raise DeploymentFailed(f"`{' '.join(command)}` ended with {ended.returncode}; the end of {log}:\n{tail}")
