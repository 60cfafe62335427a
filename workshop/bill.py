"""Software bill of materials of what ships to Lambda, written from the very wheels that are bundled.

python -m workshop.bill    writes dist/firstbell.cdx.json (CycloneDX 1.6: https://cyclonedx.org/docs/1.6/json/)
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from infra.wheels import LAMBDA
from workshop.steps import ROOT

BILL = ROOT / "dist" / "firstbell.cdx.json"


def component(wheel: Path) -> dict[str, Any]:
    """The package in a wheel: who, which version, under which licence, and the wheel's hash."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        says = HeaderParser().parsestr(archive.read(metadata).decode())
    name = re.sub(r"[-_.]+", "-", says["Name"]).lower()
    purl = f"pkg:pypi/{name}@{says['Version']}"
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": says["Version"],
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
    }
    if licence := says["License-Expression"] or says["License"]:
        found["licenses"] = [{"license": {"name": licence}}]
    return found


def bill(wheels: Path) -> dict[str, Any]:
    """A bill of every wheel in the folder. Without a time or a serial number: the same wheels make the same bill."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    components = [component(wheel) for wheel in sorted(wheels.glob("*.whl"))]
    own = {"type": "application", "bom-ref": project["name"], "name": project["name"], "version": project["version"]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
        "dependencies": [{"ref": project["name"], "dependsOn": [one["bom-ref"] for one in components]}],
    }


def main() -> int:
    written = bill(LAMBDA.wheels)
    if not written["components"]:
        print(f"bill: no wheels in {LAMBDA.wheels}; `make setup` brings them", file=sys.stderr)
        return 1
    BILL.parent.mkdir(exist_ok=True)
    BILL.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    print(f"bill: {len(written['components'])} packages in {BILL.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
