"""User pods are as KubeSpawner makes them."""

from __future__ import annotations

from demo.classroom import Classroom, let_in, user_pod

ROOM = Classroom("bio101", 3, "notebook-m5-2xlarge", cpu="500m", memory="2Gi")


class RecordingApi:
    def __init__(self) -> None:
        self.names: list[str] = []

    def create_namespaced_pod(self, namespace: str, body: dict[str, dict[str, str]]) -> None:
        self.names.append(f"{namespace}/{body['metadata']['name']}")


def test_an_announced_pod_carries_its_signals_reference_and_an_unannounced_one_does_not() -> None:
    announced = user_pod(ROOM, 1)
    walk_in = user_pod(Classroom("bio101", 3, "twin", "500m", "2Gi", announced=False), 1)

    assert announced["metadata"]["labels"]["firstbell.dev/reference"] == "bio101"
    assert "firstbell.dev/reference" not in walk_in["metadata"]["labels"]
    assert announced["metadata"]["name"] != walk_in["metadata"]["name"]


def test_a_pod_selects_and_tolerates_its_pool() -> None:
    spec = user_pod(ROOM, 1)["spec"]

    assert spec["nodeSelector"] == {"hub.jupyter.org/pool-name": "notebook-m5-2xlarge"}
    assert spec["tolerations"][0]["key"] == "hub.jupyter.org/dedicated"
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "2Gi"}


def test_every_student_of_every_room_comes_once() -> None:
    api = RecordingApi()

    let_in(api, [ROOM, Classroom("physics", 5, "notebook-m5-2xlarge", "1", "1Gi")], over_seconds=0.01)

    assert len(api.names) == len(set(api.names)) == 8
    assert api.names[0] != api.names[1]
