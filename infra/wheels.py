"""Caches the functions' wheels, for Lambda and for this machine, so that synth needs no network.

`python -m infra.wheels` fills `.cache/wheels/<target>` from functions/requirements.lock, hashes required.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "functions" / "requirements.lock"
CACHE = ROOT / ".cache" / "wheels"


@dataclass(frozen=True)
class Target:
    """Where functions run: which Python, on which machine."""

    name: str
    python_version: str
    pip_options: tuple[str, ...] = ()
    """What makes pip choose wheels of another Python and machine than its own; empty = its own."""

    @property
    def wheels(self) -> Path:
        return CACHE / self.name


LAMBDA = Target(
    "cp313-aarch64",
    "3.13",
    (
        *("--python-version", "3.13", "--implementation", "cp", "--abi", "cp313", "--abi", "abi3", "--abi", "none"),
        # The python3.13 runtime is Amazon Linux 2023 with glibc 2.34
        # (https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html), so both platform names are safe.
        *("--platform", "manylinux_2_28_aarch64", "--platform", "manylinux2014_aarch64"),
        *("--platform", "manylinux_2_17_aarch64"),
    ),
)
HOST = Target("host", f"{sys.version_info.major}.{sys.version_info.minor}")
TARGETS = {target.name: target for target in (LAMBDA, HOST)}


def download(target: Target) -> None:
    """Fill the target's folder anew. Raises CalledProcessError for a missing wheel or a hash that is not the lock's."""
    shutil.rmtree(target.wheels, ignore_errors=True)
    target.wheels.mkdir(parents=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--require-hashes", "--only-binary=:all:", "--no-deps", *target.pip_options),
            *("--requirement", LOCK, "--dest", target.wheels),
        ],
        check=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="default: all")
    for name in parser.parse_args().targets or TARGETS:
        download(TARGETS[name])
        print(f"{len(list(TARGETS[name].wheels.glob('*.whl')))} wheels in {TARGETS[name].wheels}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
