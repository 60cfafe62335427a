"""The zip that is deployed."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from infra.bundling import CannotBundle, LocalBundling, bundle
from infra.operator_file import load, resolve
from infra.wheels import HOST, LAMBDA, Target
from tests.infra import documents
from tests.infra.stacks import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1024 * 1024
ELF_AARCH64 = 183


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return resolve(load(ROOT / "firstbell.yaml"), "hub")


@pytest.fixture(scope="module")
def for_lambda(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lambda")
    bundle(folder, settings, LAMBDA)
    return folder


@pytest.fixture(scope="module")
def for_host(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("host")
    bundle(folder, settings, HOST)
    return folder


def files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def digest(folder: Path) -> str:
    content = hashlib.sha256()
    for path in files(folder):
        content.update(f"{path.relative_to(folder)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()


def test_every_wheel_fits_python_3_13_on_arm64(for_lambda: Path) -> None:
    for wheel in for_lambda.glob("*.dist-info/WHEEL"):
        tags = {line.split(": ")[1] for line in wheel.read_text().splitlines() if line.startswith("Tag: ")}
        pure = {"py3-none-any", "py2-none-any"}
        assert tags <= pure or all(tag.startswith("cp313-cp313-") and tag.endswith("aarch64") for tag in tags), wheel


def test_every_library_in_it_is_of_arm64(for_lambda: Path) -> None:
    libraries = list(for_lambda.rglob("*.so"))
    assert libraries
    for library in libraries:
        assert struct.unpack_from("<H", library.read_bytes(), 18) == (ELF_AARCH64,), library


def test_the_same_inputs_give_the_same_bytes(for_lambda: Path, settings: dict[str, Any], tmp_path: Path) -> None:
    bundle(tmp_path, settings, LAMBDA)
    assert digest(tmp_path) == digest(for_lambda)


def test_nothing_in_it_names_the_machine_that_made_it(for_lambda: Path) -> None:
    here = (str(ROOT).encode(), str(for_lambda).encode(), sys.prefix.encode())
    assert not [path for path in files(for_lambda) if any(name in path.read_bytes() for name in here)]


def test_every_module_in_it_is_compiled_for_the_python_that_runs_it(for_host: Path) -> None:
    """Unchecked (PEP 552), because the zip's file times are not the sources' own."""
    for source in for_host.rglob("*.py"):
        compiled = Path(importlib.util.cache_from_source(str(source))).read_bytes()
        assert compiled[:4] == importlib.util.MAGIC_NUMBER
        assert struct.unpack_from("<I", compiled, 4) == (0b01,)


def test_a_machine_without_lambdas_python_ships_the_sources_alone(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    bundle(tmp_path, settings, replace(LAMBDA, python_version="3.99"))
    assert not list(tmp_path.rglob("*.pyc"))


def test_it_stays_well_under_lambdas_limit(for_lambda: Path) -> None:
    """case 67: 250 MB unzipped, https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
    assert sum(path.stat().st_size for path in files(for_lambda)) < 60 * MIB


def test_the_functions_in_it_read_the_operators_file_with_nothing_else_installed(for_host: Path) -> None:
    program = (
        "import json, sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p] + [sys.argv[1]];"
        "import aws_lambda_powertools, boto3, pydantic, urllib3, firstbell.settings as settings;"
        "cluster = settings.load_cluster();"
        "print(json.dumps([cluster.name, [pool.name for pool in cluster.pools], cluster.pools[0].pod.memory_bytes]))"
    )
    answer = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", "-c", program, for_host], capture_output=True, text=True, check=True
    )
    pools = ["notebook-m5-xlarge", "notebook-m5-2xlarge", "dask-worker"]
    assert json.loads(answer.stdout) == ["hub", pools, 1024 * MIB]


def test_it_has_the_handler_of_every_function(for_lambda: Path) -> None:
    for capability in ("prescale", "tick"):
        assert (for_lambda / "firstbell" / capability / "handler.py").is_file()


def test_missing_wheels_are_an_error_that_says_what_to_do(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(CannotBundle, match="make setup"):
        bundle(tmp_path, settings, Target("never-downloaded", "3.13"))


def test_a_failure_stops_the_synth_and_does_not_fall_back_to_docker(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(CannotBundle):
        LocalBundling(settings, Target("never-downloaded", "3.13")).try_bundle(str(tmp_path))


def synth(folder: Path, file: Path, **context: str) -> subprocess.CompletedProcess[str]:
    """`python app.py` as the CDK's command line runs it, without credentials and with no network to reach."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "http_proxy"), "http://127.0.0.1:9")
    environment |= {
        "CDK_OUTDIR": str(folder),
        "CDK_CONTEXT_JSON": json.dumps({"file": str(file), **context}),
    }
    return subprocess.run(
        [sys.executable, ROOT / "app.py"], env=environment, capture_output=True, text=True, check=False, cwd=folder
    )


def test_a_synth_needs_no_credentials_and_no_network(tmp_path: Path) -> None:
    done = synth(tmp_path, ROOT / "firstbell.yaml", target="host")
    assert done.returncode == 0, done.stderr
    template = json.loads((tmp_path / "firstbell-hub.template.json").read_text())
    [asset] = {path.name.removeprefix("asset.") for path in tmp_path.glob("asset.*") if (path / "firstbell").is_dir()}
    assert asset in json.dumps(template)


def test_a_wrong_file_ends_the_synth_with_its_errors_and_no_traceback(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(documents.text(documents.cluster(default_pool="nope", regoin="us-east-1")))
    done = synth(tmp_path, file)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"{file}:4: clusters[0].default_pool: 'nope' is not a pool; allowed: one of users" in done.stderr
    assert "clusters[0].regoin: unknown key; did you mean region?" in done.stderr


def test_an_unknown_target_is_named(tmp_path: Path) -> None:
    done = synth(tmp_path, ROOT / "firstbell.yaml", target="mars")
    assert done.returncode == 1
    assert done.stderr == "context target: 'mars' is not allowed; allowed: cp313-aarch64, host\n"
