"""Local clouds that end-to-end tests share: each is started once per session, when a test first asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.cloud import LocalCloud, LocalCloudConfig
from tests.e2e.cluster_api import ClusterApi
from tests.e2e.deployed import Deployed, deploy_school


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder runs on a local cloud, so everything carries the marker."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def local_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A whole cloud: Kubernetes, AWS and the fleet; instances boot in a second."""
    config = LocalCloudConfig(name="whole", state_root=tmp_path_factory.mktemp("clouds"))
    with LocalCloud.start(config) as cloud:
        yield cloud


@pytest.fixture(scope="session")
def cluster_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A cloud without a fleet, for tests that make their nodes themselves."""
    config = LocalCloudConfig(
        name="cluster",
        image_pull_seconds=1.5,
        start_seconds=0.25,
        node_grace_seconds=20,
        components=frozenset({"kubernetes", "aws"}),
        state_root=tmp_path_factory.mktemp("clouds"),
    )
    with LocalCloud.start(config) as cloud:
        yield cloud


@pytest.fixture
def cluster(cluster_cloud: LocalCloud) -> ClusterApi:
    """The API of `cluster_cloud`, as its administrator."""
    return ClusterApi.of(cluster_cloud)


@pytest.fixture(scope="session")
def school(local_cloud: LocalCloud) -> Iterator[Deployed]:
    """Firstbell deployed to `local_cloud`. Each test uses a pool, or a reference, of its own."""
    deployed = deploy_school(local_cloud)
    yield deployed
    deployed.stop()
