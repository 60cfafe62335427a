"""How a command finds its deployment: operator's file, cluster, local cloud, profile."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.__main__ import app
from cli.connection import connect
from cli.options import ONLY_CLOUD, Target
from firstbell.errors import ConfigurationError
from tests.functional.cli.desk import Desk

CLUSTER = """
  - name: {name}
    region: {region}
    default_pool: notebook
    pools:
      - {{name: notebook, asg: notebooks, pod: {{cpu: 500m, memory: 2Gi}}}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An operator's folder with a file for one cluster, and an environment to spoil."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", {"PATH": os.defpath, "AWS_PROFILE": "production", "AWS_REGION": "eu-west-1"})
    operators_file(tmp_path / "firstbell.yaml", "hub")
    return tmp_path


def operators_file(path: Path, *names: str) -> None:
    regions = ("us-west-2", "eu-west-1")
    clusters = [CLUSTER.format(name=name, region=region) for name, region in zip(names, regions, strict=False)]
    path.write_text("clusters:" + "".join(clusters))


@pytest.fixture
def address() -> Iterator[str]:
    """Somewhere that somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def local_cloud(folder: Path, name: str, address: str) -> Path:
    state = folder / ".localcloud" / name
    state.mkdir(parents=True)
    cloud = {
        "name": name,
        "state_dir": str(state),
        "region": "us-west-2",
        "aws_endpoint": address,
        "fleet_endpoint": "http://127.0.0.1:2",
    }
    (state / "cloud.json").write_text(json.dumps(cloud))
    return state


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_the_only_cluster_of_the_file_is_meant_and_ordinary_credentials_stay() -> None:
    connection = connect(Target())
    assert (connection.settings.name, connection.settings.region) == ("hub", "us-west-2")
    assert os.environ["AWS_PROFILE"] == "production"


def test_a_profile_can_be_chosen() -> None:
    connect(Target(profile="school"))
    assert os.environ["AWS_PROFILE"] == "school"


def test_one_of_several_clusters_has_to_be_named(folder: Path) -> None:
    operators_file(folder / "two.yaml", "hub", "isle")
    unnamed = run("status", "--file", "two.yaml")
    assert unnamed.exit_code == 2
    assert "allowed by two.yaml: hub, isle" in unnamed.stderr
    assert connect(Target(file=Path("two.yaml"), cluster="isle")).settings.region == "eu-west-1"
    assert run("status", "--cluster", "nowhere").exit_code == 2


def test_a_wrong_file_is_told_with_its_line(folder: Path) -> None:
    (folder / "firstbell.yaml").write_text("clusters: nothing\n")
    wrong = run("status")
    assert wrong.exit_code == 2
    assert "firstbell.yaml:1: clusters" in wrong.stderr


def test_local_alone_means_the_only_cloud_that_runs_and_no_setting_of_aws_is_left(folder: Path, address: str) -> None:
    local_cloud(folder, "stopped", "http://127.0.0.1:1")
    local_cloud(folder, "hub", address)
    connect(Target(local=ONLY_CLOUD))
    assert os.environ["AWS_ENDPOINT_URL"] == address
    assert os.environ["AWS_ENDPOINT_URL_AUTO_SCALING"] == "http://127.0.0.1:2"
    assert "AWS_PROFILE" not in os.environ
    assert "AWS_REGION" not in os.environ


def test_a_file_that_lies_beside_the_cloud_is_the_one_that_was_deployed_to_it(folder: Path, address: str) -> None:
    operators_file(local_cloud(folder, "hub", address) / "firstbell.yaml", "other")
    assert connect(Target(local="hub")).settings.name == "other"
    assert connect(Target(local="hub", file=folder / "firstbell.yaml")).settings.name == "hub"


def test_a_cloud_that_does_not_run_or_is_one_of_two_is_refused(folder: Path, address: str) -> None:
    with pytest.raises(ConfigurationError, match=r"none; `make up` starts one"):
        connect(Target(local=ONLY_CLOUD))
    local_cloud(folder, "stopped", "http://127.0.0.1:1")
    with pytest.raises(ConfigurationError, match="stopped does not run"):
        connect(Target(local="stopped"))
    with pytest.raises(ConfigurationError, match=r"missing/cloud\.json cannot be read"):
        connect(Target(local="missing"))
    local_cloud(folder, "one", address)
    local_cloud(folder, "two", address)
    with pytest.raises(ConfigurationError, match="these do: one, two"):
        connect(Target(local=ONLY_CLOUD))


@pytest.mark.parametrize(
    ("arguments", "local"),
    [
        (["--local"], ONLY_CLOUD),
        (["--local", "--json"], ONLY_CLOUD),
        (["--local", "demo", "--json"], "demo"),
        (["--local=demo"], "demo"),
        ([], None),
    ],
)
def test_local_may_stand_without_a_name(arguments: list[str], local: str | None) -> None:
    desk = Desk()
    assert desk.run("status", *arguments).exit_code == 0
    assert desk.targets[0].local == local
