from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from moto import mock_aws

from firstbell.cloud.session import Clients

if TYPE_CHECKING:
    from collections.abc import Iterator

REGION = "us-west-2"


@pytest.fixture(scope="session")
def one_set_of_clients() -> Iterator[Clients]:
    """Made once: loading a service's model takes longer than most tests."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_DEFAULT_REGION", REGION)
        for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
            environment.delenv(name, raising=False)
        yield Clients()


@pytest.fixture
def clients(one_set_of_clients: Clients) -> Iterator[Clients]:
    """Clients of moto's AWS, empty at the start of each test: in process, no network."""
    with mock_aws():
        yield one_set_of_clients
