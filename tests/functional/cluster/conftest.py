from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from firstbell.cluster.client import ApiServer
from firstbell.cluster.kubernetes import KubernetesCluster
from tests.fakes.api_server import ScriptedApiServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class Client:
    """A client of a scripted API server, with time, sleep and tokens in the test's hands."""

    server: ScriptedApiServer
    now: float = 1_764_580_000.0
    slept: list[float] = field(default_factory=list)
    minted: int = 0

    def mint(self) -> str:
        self.minted += 1
        return f"token-{self.minted}"

    def api(self, **options: Any) -> ApiServer:
        endpoint = options.pop("endpoint", self.server.endpoint)
        ca_data = options.pop("ca_data", self.server.ca_data)
        return ApiServer(endpoint, ca_data, self.mint, lambda: self.now, sleep=self.slept.append, **options)


@pytest.fixture
def server() -> Iterator[ScriptedApiServer]:
    with ScriptedApiServer() as scripted:
        yield scripted


@pytest.fixture
def client(server: ScriptedApiServer) -> Client:
    return Client(server)


@pytest.fixture
def api_server(client: Client) -> Iterator[Callable[..., ApiServer]]:
    """Makes clients, and closes their connections after the test."""
    made: list[ApiServer] = []

    def make(**options: Any) -> ApiServer:
        made.append(client.api(**options))
        return made[-1]

    yield make
    for api in made:
        api.close()


@pytest.fixture
def api(api_server: Callable[..., ApiServer]) -> ApiServer:
    return api_server()


@pytest.fixture
def cluster(api: ApiServer) -> KubernetesCluster:
    return KubernetesCluster(api)
