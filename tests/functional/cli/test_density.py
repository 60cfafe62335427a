from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from cli.__main__ import app
from cli.catalogue import CATALOGUE, read_catalogue
from firstbell.errors import ConfigurationError
from tests.unit.capacity.described import described, descriptions

POD = "cpu=500m,memory=2Gi"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def density(*arguments: str, pod: str = POD) -> Result:
    return run("density", "--offline", "--pod", pod, *arguments)


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in {
        "ACCESS_KEY_ID": "made-up",
        "SECRET_ACCESS_KEY": "made-up",
        "DEFAULT_REGION": "us-west-2",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with mock_aws():
        yield


def test_density_is_printed_as_one_json_object() -> None:
    found = density("--instance-type", "m5.large", "--json")
    assert found.exit_code == 0
    printed = json.loads(found.stdout)
    assert printed.pop("allocatable") == {
        "cpu_millicores": 1930,
        "memory_bytes": 7281311744,
        "ephemeral_storage_bytes": 18132815052,
        "pods": 29,
        "gpus": 0,
        "volumes": 24,
    }
    assert printed == {
        "instance_type": "m5.large",
        "eni_max_pods": 29,
        "max_pods": 29,
        "density": 3,
        "limited_by": "cpu",
    }


@pytest.mark.parametrize(
    ("name", "options", "by_addresses", "allowed"),
    [
        ("c5.18xlarge", (), 737, 250),
        ("c5.18xlarge", ("--self-managed",), 737, 737),
        ("m5.large", ("--cni-prefix",), 434, 110),
        ("m4.large", ("--cni-prefix",), 20, 20),
        ("t3.2xlarge", ("--cni-custom",), 44, 44),
        ("m6g.xlarge", ("--reserved-enis", "2"), 30, 30),
        ("m5.large", ("--ipv6",), 434, 110),
        ("m5.large", ("--max-pods", "50"), 29, 50),
    ],
)
def test_options_of_the_network_change_max_pods(
    name: str, options: tuple[str, ...], by_addresses: int, allowed: int
) -> None:
    """Cases 44 and 45."""
    printed = json.loads(density("--instance-type", name, "--json", *options, pod="cpu=1m").stdout)
    assert (printed["eni_max_pods"], printed["max_pods"], printed["density"]) == (by_addresses, allowed, allowed)


def test_daemonsets_take_of_the_room() -> None:
    """Case 49: 29 slots, 5 DaemonSet pods."""
    options = [part for _ in range(5) for part in ("--daemonset", "cpu=50m")]
    printed = json.loads(density("--instance-type", "m5.large", "--json", *options, pod="cpu=1m").stdout)
    assert (printed["density"], printed["limited_by"]) == (24, "pods")


def test_gpus_are_asked_for_as_gpu() -> None:
    assert json.loads(density("--instance-type", "g5.12xlarge", "--json", pod="gpu=1").stdout)["density"] == 4


@pytest.mark.parametrize(
    ("name", "pod", "limited_by", "reason"),
    [
        ("m5.large", "gpu=1", "gpu", "the pod asks for 1 GPU and m5.large has none"),
        ("m5.large", "cpu=2", "cpu", "the pod asks for 2000m cpu and m5.large offers 1930m cpu"),
        ("mac2.metal", POD, None, "mac2.metal runs no Linux node"),
    ],
)
def test_a_pod_that_fits_nowhere_ends_with_one_and_the_reason(
    name: str, pod: str, limited_by: str | None, reason: str
) -> None:
    refused = density("--instance-type", name, "--json", pod=pod)
    assert refused.exit_code == 1
    printed = json.loads(refused.stdout)
    assert (printed["density"], printed["limited_by"], printed["reason"]) == (0, limited_by, reason)
    assert reason in density("--instance-type", name, pod=pod).stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--pod", POD, "--instance-type", "m9x.large", "--offline"), "unknown instance type 'm9x.large'"),
        (("--pod", POD, "--offline"), "give either --instance-type or --all"),
        (("--pod", POD, "--offline", "--all", "--instance-type", "m5.large"), "give either --instance-type or --all"),
        (("--pod", "cores=2", "--all", "--offline"), "--pod: 'cores=2' is not one of cpu=..., memory=..."),
        (("--pod", "cpu", "--all", "--offline"), "--pod: 'cpu' is not one of"),
        (("--pod", "cpu=1,cpu=2", "--all", "--offline"), "--pod: cpu is given twice"),
        (("--pod", "memory=-1Gi", "--all", "--offline"), "--pod: memory: '-1Gi' is no quantity: allowed is"),
        (("--pod", POD, "--daemonset", "", "--all", "--offline"), "--daemonset: '' is not one of"),
    ],
)
def test_wrong_use_ends_with_two_and_says_what_is_wrong(arguments: tuple[str, ...], problem: str) -> None:
    """Case 47: an unknown type is an error, not a guess."""
    refused = run("density", *arguments)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert problem in refused.stderr


def test_all_prints_every_known_type_one_a_line() -> None:
    found = density("--all", "--json")
    assert found.exit_code == 0
    printed = [json.loads(line) for line in found.stdout.splitlines()]
    assert [one["instance_type"] for one in printed] == sorted(described())
    assert all(one["density"] > 0 or one["reason"] for one in printed)
    assert density("--all").stdout.count("\n") == 1395


def test_the_answer_in_words_says_what_limits() -> None:
    assert density("--instance-type", "m5.large").stdout == (
        "m5.large: 3 a node, limited by cpu (at most 29 pods, 1930m cpu, 6.78Gi memory)\n"
    )


@pytest.mark.usefixtures("ec2")
def test_without_offline_ec2_is_asked() -> None:
    asked = run("density", "--pod", POD, "--instance-type", "m5.large", "--json")
    assert asked.stdout == density("--instance-type", "m5.large", "--json").stdout
    unknown = run("density", "--pod", POD, "--instance-type", "m9x.large")
    assert (unknown.exit_code, unknown.stderr) == (
        2,
        "error: unknown instance type 'm9x.large': EC2 describes no such type in this region\n",
    )


def test_where_ec2_cannot_be_asked_the_catalogue_is_pointed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "PROFILE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    refused = run("density", "--pod", POD, "--instance-type", "m5.large", "--region", "us-west-2")
    assert refused.exit_code == 1
    assert "--offline asks the catalogue instead" in refused.stderr


class PagedEC2:
    """ec2:DescribeInstanceTypes of one region, a hundred types a page. (moto takes seconds to answer for all.)"""

    def __init__(self, region: str | None = None) -> None:
        self.meta = SimpleNamespace(region_name=region)
        self.ec2 = self

    def get_paginator(self, operation: str) -> PagedEC2:
        assert operation == "describe_instance_types"
        return self

    def paginate(self) -> Iterator[dict[str, Any]]:
        entries = [
            entry for name, entry in descriptions().items() if (name[0] < "m") is (self.meta.region_name == "us-east-1")
        ]
        for start in range(0, len(entries), 100):
            yield {"InstanceTypes": entries[start : start + 100]}


def test_a_refresh_writes_every_page_of_every_region_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.catalogue.Clients", PagedEC2)
    file = tmp_path / "types.json"
    regions = ["us-east-1", "us-west-2"]
    refreshed = run(
        "catalogue", "refresh", "--region", regions[0], "--region", regions[1], "--note", "a test", "--file", str(file)
    )
    assert (refreshed.exit_code, refreshed.stdout) == (0, f"1395 instance types written to {file}\n")
    assert read_catalogue(file) == described()
    document = json.loads(file.read_text())
    assert (document["source"], document["regions"], document["note"]) == (
        "ec2:DescribeInstanceTypes",
        regions,
        "a test",
    )


def test_the_committed_catalogue_is_what_moto_carries_and_says_so() -> None:
    assert read_catalogue() == described()
    assert "moto" in json.loads(CATALOGUE.read_text())["note"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"fields": ["name"], "types": [["m5.large", 2]]}'])
def test_a_broken_catalogue_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / "types.json"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match=r"types\.json.*firstbell catalogue refresh"):
        read_catalogue(file)
    assert density("--all", "--catalogue", str(file)).exit_code == 1
