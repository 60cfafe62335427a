"""The bill of materials says what is in the wheels, in words that other tools read."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from workshop.bill import bill


def wheel(folder: Path, name: str, version: str, licence: str) -> Path:
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            f"{name}-{version}.dist-info/METADATA",
            f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{licence}\n\nA library.\n",
        )
    return path


def test_each_wheel_is_named_with_its_version_licence_and_hash(tmp_path: Path) -> None:
    path = wheel(tmp_path, "typing_extensions", "4.16.0", "License-Expression: PSF-2.0")
    (component,) = bill(tmp_path)["components"]
    assert component["purl"] == "pkg:pypi/typing-extensions@4.16.0"
    assert component["licenses"] == [{"license": {"name": "PSF-2.0"}}]
    assert component["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}]


def test_the_bill_is_valid_cyclonedx_and_the_same_for_the_same_wheels(tmp_path: Path) -> None:
    wheel(tmp_path, "six", "1.17.0", "License: MIT")
    wheel(tmp_path, "silent", "1.0", "Summary: says nothing of its licence")
    text = json.dumps(bill(tmp_path))
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert text == json.dumps(bill(tmp_path))
