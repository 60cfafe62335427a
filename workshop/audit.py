"""Known vulnerabilities of what ships to Lambda, asked of the package index's advisories when it can be reached.

    python -m workshop.audit    1 when a locked package of functions/requirements.lock has an advisory

An index that does not answer audits nothing; that is said, and does not fail a check on a train.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from workshop.steps import ROOT

LOCK = "functions/requirements.lock"
PATIENCE_SECONDS = 60


def audit() -> list[dict[str, Any]] | None:
    """pip-audit's answer per package, or None where it got none."""
    program = str(Path(sys.executable).parent / "pip-audit")
    command = [program, "--requirement", LOCK, "--require-hashes", "--disable-pip"]
    command += ["--timeout", "5", "--format", "json", "--progress-spinner", "off"]
    try:
        answer = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        packages: list[dict[str, Any]] = json.loads(answer.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError):
        return None
    return packages


def main() -> int:
    packages = audit()
    audited = [package for package in packages or () if "skip_reason" not in package]
    if not audited:
        print("audit: no advisories could be reached; nothing was audited")
        return 0
    advisories = [(package, found) for package in audited for found in package["vulns"]]
    for package, found in advisories:
        fixed = ", ".join(found["fix_versions"]) or "no version yet"
        print(f"audit: {package['name']} {package['version']}: {found['id']}, fixed in {fixed}", file=sys.stderr)
    print(f"audit: {len(audited)} packages of {LOCK}, {len(advisories)} advisories")
    return 1 if advisories else 0


if __name__ == "__main__":
    sys.exit(main())
