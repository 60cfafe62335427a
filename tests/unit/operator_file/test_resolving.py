"""What the functions get of the operator's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from firstbell.capacity.pools import Networking
from firstbell.capacity.resources import Resources
from firstbell.capacity.scheduling import Taint, Toleration
from firstbell.settings import Cluster, Portal, parse_cluster
from infra.operator_file import load, resolve
from infra.operator_file.schema import SCHEMA_FILE, schema_text
from tests.infra import documents


def settings(tmp_path: Path, text: str, cluster: str = "hub") -> Cluster:
    """As the functions read it, through JSON as it is bundled."""
    path = tmp_path / "firstbell.yaml"
    path.write_text(text, encoding="utf-8")
    return parse_cluster(json.loads(json.dumps(resolve(load(path), cluster))))


def test_quantities_become_the_schedulers_integers(tmp_path: Path) -> None:
    """case 48"""
    pod = {"cpu": 0.25, "memory": "1.5Gi", "gpu": 1, "ephemeral_storage": "129e6"}
    [pool] = settings(tmp_path, documents.text(documents.cluster(pools=[documents.pool(pod=pod)]))).pools
    assert pool.pod == Resources(
        cpu_millicores=250, memory_bytes=1610612736, ephemeral_storage_bytes=129000000, pods=1, gpus=1
    )


def test_every_setting_of_a_pool_arrives(tmp_path: Path) -> None:
    given = documents.pool(
        labels={"a": "b"},
        taints=["dedicated=user:NoSchedule", "busy:PreferNoSchedule"],
        tolerations=[{"key": "extra", "operator": "Exists"}],
        mode="observe",
        fallback=["other"],
        lead_minutes=7.5,
        preemptible={"component": "user-placeholder"},
        networking={"custom_networking": True, "reserved_enis": 1, "max_pods": 58},
        stateful=True,
    )
    pools = [given, documents.pool("other", spot=True)]
    pool, other = settings(tmp_path, documents.text(documents.cluster(pools=pools))).pools
    assert pool.group == "users-group"
    assert pool.labels == {"a": "b"}
    assert pool.taints == (Taint("dedicated", "user", "NoSchedule"), Taint("busy", "", "PreferNoSchedule"))
    assert pool.tolerations[-1] == Toleration(key="extra", operator="Exists")
    assert pool.mode == "observe"
    assert pool.fallback == ("other",)
    assert pool.lead_minutes == 7.5
    assert pool.preemptible == {"component": "user-placeholder"}
    assert pool.networking == Networking(custom_networking=True, reserved_enis=1, max_pods=58)
    assert (pool.stateful, pool.spot, other.stateful, other.spot) == (True, False, False, True)
    assert other.lead_minutes is None


def test_a_pool_that_is_made_here_is_known_by_the_name_that_it_gets(tmp_path: Path) -> None:
    cluster = documents.cluster(pools=[documents.created()], api_server=documents.API_SERVER)
    assert settings(tmp_path, documents.text(cluster)).pools[0].group == "firstbell-hub-users"


def test_a_managed_node_groups_group_is_left_to_be_looked_up(tmp_path: Path) -> None:
    pool = {**documents.pool(), "asg": None, "nodegroup": "workers"}
    [resolved] = settings(tmp_path, documents.text(documents.cluster(pools=[pool]))).pools
    assert (resolved.group, resolved.nodegroup) == (None, "workers")


@pytest.mark.parametrize(
    ("principal", "account"),
    [("012345678901", "012345678901"), ("arn:aws:iam::111122223333:role/path/timetable", "111122223333")],
)
def test_a_portal_is_known_by_its_account_and_source(tmp_path: Path, principal: str, account: str) -> None:
    cluster = documents.cluster(portals=[documents.portal(principal=principal)])
    [portal] = settings(tmp_path, documents.text(cluster)).portals
    assert portal == Portal("timetable", account, "edu.example.timetable", max_pods=600, max_reserved_hours=12)


def test_every_cluster_knows_who_serves_which_region(tmp_path: Path) -> None:
    text = documents.text(documents.cluster(), documents.cluster("hub-eu", "eu-west-1"))
    for name in ("hub", "hub-eu"):
        assert settings(tmp_path, text, name).regions == {"us-west-2": "hub", "eu-west-1": "hub-eu"}


def test_a_region_with_two_clusters_is_served_by_the_one_that_the_file_names(tmp_path: Path) -> None:
    text = documents.text(documents.cluster(), documents.cluster("beta"), regions={"us-west-2": "beta"})
    assert settings(tmp_path, text).regions == {"us-west-2": "beta"}


def test_a_cluster_that_the_file_does_not_have_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="nowhere"):
        settings(tmp_path, documents.text(), "nowhere")


def test_the_schema_in_the_repository_is_that_of_the_models() -> None:
    """`python -m infra.operator_file.schema` writes it."""
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text()


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_an_editor_accepts_what_synth_accepts(validator: jsonschema.Draft202012Validator) -> None:
    shipped = yaml.safe_load((Path(__file__).resolve().parents[3] / "firstbell.yaml").read_text(encoding="utf-8"))
    assert not list(validator.iter_errors(shipped))


@pytest.mark.parametrize(
    "changes", [{"mode": "watch"}, {"lead_minutes": -1}, {"unknown": 1}, {"taints": ["x"]}, {"pod": {"cpu": "1"}}]
)
def test_an_editor_refuses_what_synth_refuses(
    validator: jsonschema.Draft202012Validator, changes: dict[str, Any]
) -> None:
    document = yaml.safe_load(documents.text(documents.cluster(pools=[documents.pool(**changes)])))
    assert list(validator.iter_errors(document))
