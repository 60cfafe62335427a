"""Puts what runs in Lambda into one folder, without Docker and without a network."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsii
from aws_cdk import AssetHashType, BundlingOptions, ILocalBundling
from aws_cdk import aws_lambda as lambda_

from infra.wheels import LOCK, ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.wheels import Target

FUNCTIONS = ROOT / "functions"
RESOLVED_FILE = "firstbell.json"
RUNTIME = lambda_.Runtime.PYTHON_3_13


class CannotBundle(Exception):
    """The folder cannot be made; the text says why and what to do."""


def bundle(folder: Path, settings: Mapping[str, Any], target: Target) -> None:
    """Fill `folder` with the package, its dependencies for `target`, the bytecode of both where this machine has a
    Python of the target's version, and the resolved operator's file.

    The same inputs give the same bytes on every machine, and the same bytecode. Raises CannotBundle.
    """
    if not any(target.wheels.glob("*.whl")):
        raise CannotBundle(f"no wheels in {target.wheels}; run `make setup` (or python -m infra.wheels {target.name})")
    installed = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"),
            *("--no-index", "--find-links", str(target.wheels), "--only-binary=:all:", "--no-deps", "--require-hashes"),
            *(*target.pip_options, "--target", str(folder), "--requirement", str(LOCK)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        raise CannotBundle(f"the wheels of {target.name} do not fit {LOCK}; run `make setup`\n{installed.stderr}")
    # Scripts carry the path of the Python that installed them, and RECORD their hashes; nothing in Lambda reads either.
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for record in folder.glob("*.dist-info/RECORD"):
        record.unlink()
    shutil.copytree(
        FUNCTIONS / "firstbell", folder / "firstbell", ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
    )
    _compile(folder, target)
    (folder / RESOLVED_FILE).write_text(json.dumps(settings, sort_keys=True), encoding="utf-8")


def _compile(folder: Path, target: Target) -> None:
    """Lambda's code folder is read-only, so what is not compiled here is compiled at every cold start, which takes
    three quarters of one (docs/adr/0010-cold-start.md). No source is looked at any more when it is imported."""
    python = next((name for name in (sys.executable, f"python{target.python_version}") if _is_a(name, target)), None)
    if python is not None:
        options = ("-q", "--invalidation-mode", "unchecked-hash", "-s", str(folder), str(folder))
        subprocess.run([python, "-I", "-m", "compileall", *options], check=True, stdout=subprocess.DEVNULL)


def _is_a(python: str, target: Target) -> bool:
    """A name on PATH may stand for nothing, or for another version."""
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return answer.stdout.strip() == target.python_version


@jsii.implements(ILocalBundling)
class LocalBundling:
    """CDK's door to `bundle`. It raises on failure: answering False would make CDK try Docker."""

    def __init__(self, settings: Mapping[str, Any], target: Target) -> None:
        self._settings = settings
        self._target = target

    def try_bundle(self, output_dir: str, *_: Any, **__: Any) -> bool:
        bundle(Path(output_dir), self._settings, self._target)
        return True


def functions_code(settings: Mapping[str, Any], target: Target) -> lambda_.Code:
    """The one zip of all functions.

    Its hash is that of the output: a hash of the source would not see another Python, lock or operator's file.
    """
    return lambda_.Code.from_asset(
        str(FUNCTIONS),
        asset_hash_type=AssetHashType.OUTPUT,
        bundling=BundlingOptions(image=RUNTIME.bundling_image, local=LocalBundling(settings, target)),
    )
