"""The snippet of docs/jupyterhub that a hub's operator pastes, run as JupyterHub runs its configuration file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes import client

from firstbell.capacity.reservations import REFERENCE_LABEL

SNIPPET = Path(__file__).resolve().parents[2] / "docs" / "jupyterhub" / "jupyterhub_config.py"


def hook() -> Any:
    configuration = SimpleNamespace(KubeSpawner=SimpleNamespace())
    exec(compile(SNIPPET.read_text(), str(SNIPPET), "exec"), {"c": configuration})  # noqa: S102  (ours, and as a hub does)
    return configuration.KubeSpawner.modify_pod_hook


def spawner(*groups: str) -> Any:
    return SimpleNamespace(user=SimpleNamespace(groups=[SimpleNamespace(name=name) for name in groups]))


def labels_after(*groups: str) -> dict[str, str]:
    pod = client.V1Pod(metadata=client.V1ObjectMeta(labels={"component": "singleuser-server"}))
    return dict(hook()(spawner(*groups), pod).metadata.labels)


def test_a_student_of_a_class_gets_the_classs_reference() -> None:
    assert labels_after("staff", "class-bio101-2026-12-01") == {
        "component": "singleuser-server",
        REFERENCE_LABEL: "bio101-2026-12-01",
    }


@pytest.mark.parametrize("groups", [(), ("staff",), ("class-",), ("class-no spaces",), ("class-" + 64 * "x",)])
def test_a_pod_is_left_as_it_is_where_there_is_no_reference_that_a_label_may_hold(groups: tuple[str, ...]) -> None:
    assert labels_after(*groups) == {"component": "singleuser-server"}


def test_a_pod_without_labels_is_labelled_too() -> None:
    pod = client.V1Pod(metadata=client.V1ObjectMeta())
    assert hook()(spawner("class-bio101"), pod).metadata.labels == {REFERENCE_LABEL: "bio101"}
