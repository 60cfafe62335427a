"""Renews the locks from the pinned direct dependencies, and checks offline that none has drifted from them.

    python -m workshop.locks renew    resolve again (needs the network)
    python -m workshop.locks check    1 when a requirements file changed and its lock did not

A lock's first line holds the digest of the requirements that it was resolved from; that is what is checked.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

from workshop.steps import ROOT

OLDEST_PYTHON = "3.11"
DIGEST_LINE = "# of requirements "
LOCKS = {
    ROOT / "functions/requirements.txt": ROOT / "functions/requirements.lock",
    ROOT / "requirements.txt": ROOT / "requirements.lock",
}
UV_LOCK = ROOT / "workshop/uv.txt"


def direct_requirements(path: Path) -> list[str]:
    """The requirements that a file names, comments and blank lines left out, included files read."""
    named: list[str] = []
    for line in path.read_text().splitlines():
        requirement = line.split("#", 1)[0].strip()
        if requirement.startswith("-r "):
            named += direct_requirements(path.parent / requirement[3:].strip())
        elif requirement:
            named.append(requirement)
    return named


def digest_line(requirements: Path) -> str:
    content = "\n".join(sorted(direct_requirements(requirements)))
    return DIGEST_LINE + hashlib.sha256(content.encode()).hexdigest()


def drifted() -> list[str]:
    """What is wrong, in words; empty when every lock is of its requirements."""
    problems = [
        f"{lock.relative_to(ROOT)} is not of {source.relative_to(ROOT)} as it stands now"
        for source, lock in LOCKS.items()
        if lock.read_text().split("\n", 1)[0] != digest_line(source)
    ]
    package = json.loads((ROOT / "package.json").read_text())
    locked = json.loads((ROOT / "package-lock.json").read_text())["packages"][""]
    if locked.get("devDependencies") != package.get("devDependencies"):
        problems.append("package-lock.json is not of package.json as it stands now")
    return problems


def renew() -> None:
    for source, lock in LOCKS.items():
        _compile(source, lock)
        lock.write_text(f"{digest_line(source)}\n{lock.read_text()}")
    _compile(UV_LOCK, UV_LOCK)
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is not on PATH; `make lock` puts it there")
    subprocess.run([npm, "install", "--package-lock-only", "--ignore-scripts"], cwd=ROOT, check=True)


def _compile(source: Path, lock: Path) -> None:
    """Universal, so that one lock serves every platform and every Python that the project runs on."""
    options = ["--quiet", "--universal", "--python-version", OLDEST_PYTHON]
    options += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--output-file", str(lock)]
    subprocess.run([Path(sys.executable).parent / "uv", "pip", "compile", *options, str(source)], cwd=ROOT, check=True)


def main() -> int:
    if sys.argv[1:] == ["renew"]:
        renew()
        return 0
    if sys.argv[1:] == ["check"]:
        problems = drifted()
        for problem in problems:
            print(f"locks: {problem}; `make lock` renews it", file=sys.stderr)
        return 1 if problems else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
