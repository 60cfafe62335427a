"""Nodes written to an API server: a small stand-in that answers as one does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from localcloud.fleet.nodeconfig import NodeConfig
from localcloud.fleet.registrar import ApiServerRegistrar
from localcloud.fleet.state import Machine


@dataclass
class StandIn:
    """Keeps what is posted; answers 503 as often as it is told."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    pods: list[dict[str, Any]] = field(default_factory=list)
    unavailable: int = 0
    tokens: set[str] = field(default_factory=set)
    url: str = ""

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.unavailable:
            self.unavailable -= 1
            return 503, {"kind": "Status"}
        if path == "/version":
            return 200, {"gitVersion": "v1.36.3"}
        if path.startswith("/api/v1/pods"):
            first = "continue=&" in path + "&"
            pods = self.pods[:1] if first else self.pods[1:]
            return 200, {"items": pods, "metadata": {"continue": "more"} if first and len(self.pods) > 1 else {}}
        name = body.get("metadata", {}).get("name", path.rpartition("/")[2])
        kind = "csinodes" if "csinodes" in path else "nodes"
        key = f"{kind}/{name}"
        return self.change(method, key, body)

    def change(self, method: str, key: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "not a label" in body.get("metadata", {}).get("labels", {}):
            return 422, {"kind": "Status"}
        known = key in self.objects
        if method == "POST" and not known:
            self.objects[key] = {**body, "metadata": {**body["metadata"], "uid": "u-1"}}
            return 201, self.objects[key]
        if method == "POST" or not known:
            return (409 if known else 404), {"kind": "Status"}
        return 200, self.objects.pop(key) if method == "DELETE" else self.objects[key]


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    state = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            state.tokens.add(self.headers.get("Authorization", ""))
            status, answer = state.answer(self.command, self.path, json.loads(self.rfile.read(length) or b"{}"))
            payload = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_DELETE = respond  # noqa: N815 - the names that the base class calls

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


def machine() -> Machine:
    return Machine(
        instance_id="i-0aa",
        instance_type="m5.xlarge",
        zone="us-west-2a",
        subnet_id="subnet-1",
        private_ip="172.31.0.5",
        node_name="ip-172-31-0-5.us-west-2.compute.internal",
        group_name="pool",
        spot=False,
        launched_at=0,
        boot_seconds=1,
        node_config=NodeConfig(),
        state="running",
    )


def registrar(stand_in: StandIn, tmp_path: Path) -> ApiServerRegistrar:
    return ApiServerRegistrar(stand_in.url, tmp_path / "unused", "secret", region="us-west-2")


def wait(registrar: ApiServerRegistrar, one: Machine, *, leave: bool = False) -> None:
    done = threading.Event()
    (registrar.leave if leave else registrar.join)(one, done.set)
    assert done.wait(10)


def test_a_node_and_its_csi_node_are_created_and_the_node_deleted_as_admin(stand_in: StandIn, tmp_path: Path) -> None:
    ours, one = registrar(stand_in, tmp_path), machine()
    wait(ours, one)
    node = stand_in.objects[f"nodes/{one.node_name}"]
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.3-eks-localcloud"
    csi_node = stand_in.objects[f"csinodes/{one.node_name}"]
    assert csi_node["metadata"]["ownerReferences"][0]["uid"] == "u-1"
    wait(ours, one, leave=True)
    assert f"nodes/{one.node_name}" not in stand_in.objects
    assert stand_in.tokens == {"Bearer secret"}


def test_an_api_server_that_is_away_for_a_moment_gets_the_node_later(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.unavailable = 2
    wait(registrar(stand_in, tmp_path), machine())
    assert len(stand_in.objects) == 2


def test_a_node_that_the_api_server_will_never_take_does_not_hold_up_the_others(
    stand_in: StandIn, tmp_path: Path
) -> None:
    ours, one = registrar(stand_in, tmp_path), machine()
    one.node_config = NodeConfig({"not a label": "x"})
    ours.join(one, lambda: pytest.fail("it joined"))
    wait(ours, machine())
    assert len(stand_in.objects) == 2


def test_a_node_that_is_there_already_is_taken_as_it_is(stand_in: StandIn, tmp_path: Path) -> None:
    ours, one = registrar(stand_in, tmp_path), machine()
    wait(ours, one)
    wait(ours, one)
    wait(ours, one, leave=True)
    wait(ours, one, leave=True)


def test_a_machine_that_was_ended_meanwhile_does_not_join(stand_in: StandIn, tmp_path: Path) -> None:
    ours, one = registrar(stand_in, tmp_path), machine()
    one.state = "shutting-down"
    wait(ours, one)
    assert stand_in.objects == {}


def test_busyness_counts_what_a_drain_would_have_to_move_over_all_pages(stand_in: StandIn, tmp_path: Path) -> None:
    def pod(phase: str = "Running", **metadata: Any) -> dict[str, Any]:
        return {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": phase}}

    stand_in.pods = [
        pod(),
        pod(),
        pod("Succeeded"),
        pod(ownerReferences=[{"kind": "DaemonSet"}]),
        pod(annotations={"kubernetes.io/config.mirror": "x"}),
        {"metadata": {}, "spec": {}, "status": {"phase": "Pending"}},
    ]
    assert registrar(stand_in, tmp_path).busy_pods() == {"n": 2}


def test_unknown_busyness_is_none(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.unavailable = 1
    assert registrar(stand_in, tmp_path).busy_pods() == {}
