from __future__ import annotations

from typing import Any

import pytest

from firstbell.capacity.quantities import InvalidQuantity
from firstbell.capacity.requests import NO_ATTACH_LIMIT, allocatable_resources, pod_requests
from firstbell.capacity.resources import Resources

MIB = 2**20


def container(cpu: str = "", memory: str = "", *, sidecar: bool = False, **other: str) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory} | {name.replace("_", "-"): amount for name, amount in other.items()}
    written: dict[str, Any] = {"resources": {"requests": {name: amount for name, amount in requests.items() if amount}}}
    return written | ({"restartPolicy": "Always"} if sidecar else {})


@pytest.mark.parametrize(
    ("spec", "millicores", "mebibytes"),
    [
        pytest.param({"containers": [{}]}, 0, 0, id="nothing is asked for"),
        pytest.param(
            {"containers": [container("100m", "64Mi"), container("1", "1Gi")]}, 1100, 1088, id="containers add up",
        ),
        pytest.param(
            {"containers": [container("0.1m")] * 10}, 1, 0, id="the sum is rounded, not its parts",
        ),
        pytest.param(
            {"containers": [container("100m", "1Gi")], "initContainers": [container("2", "64Mi"), container("1")]},
            2000, 1024, id="the largest init container counts, per resource",
        ),
        pytest.param(
            {"containers": [container("1", "1Gi")], "initContainers": [container("200m", "64Mi", sidecar=True)]},
            1200, 1088, id="a sidecar runs on beside the containers",
        ),
        pytest.param(
            {
                "containers": [container("100m")],
                "initContainers": [container("1", sidecar=True), container("2"), container("1", sidecar=True)],
            },
            3000, 0, id="an init container runs beside the sidecars before it, not those after it",
        ),
        pytest.param(
            {"containers": [container("100m")], "initContainers": [container("2"), container("1", sidecar=True)]},
            2000, 0, id="a sidecar after the init container does not add to it",
        ),
        pytest.param(
            {"containers": [container("1", "1Gi")], "overhead": {"cpu": "250m", "memory": "120Mi"}},
            1250, 1144, id="a runtime class's overhead is added",
        ),
        pytest.param(
            {
                "containers": [container("1", "1Gi")],
                "resources": {"requests": {"cpu": "3"}},
                "overhead": {"cpu": "250m"},
            },
            3250, 1024, id="what is set for the pod replaces the sum, and overhead still comes on top",
        ),
        pytest.param(
            {"containers": [{"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}]},
            1000, 1024, id="a missing request is the limit",
        ),
        pytest.param({"containers": None, "initContainers": None, "overhead": None}, 0, 0, id="null reads as absent"),
    ],
)  # fmt: skip
def test_a_pod_asks_for_what_the_scheduler_counts(spec: dict[str, Any], millicores: int, mebibytes: int) -> None:
    assert pod_requests(spec) == Resources(cpu_millicores=millicores, memory_bytes=mebibytes * MIB, pods=1)


def test_gpus_storage_and_volumes_are_counted_too() -> None:
    spec = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2", "ephemeral-storage": "1k"}}}]}
    assert pod_requests(spec, volumes=3) == Resources(ephemeral_storage_bytes=1000, gpus=2, pods=1, volumes=3)


def test_only_cpu_and_memory_can_be_set_for_the_pod_as_a_whole() -> None:
    """k8s.io/component-helpers/resource: IsSupportedPodLevelResource."""
    assert pod_requests({"containers": [container("1")], "resources": {"requests": {"ephemeral-storage": "5"}}}) == (
        Resources(cpu_millicores=1000, pods=1)
    )


def test_a_request_that_is_no_quantity_is_refused() -> None:
    with pytest.raises(InvalidQuantity, match="'1 core'"):
        pod_requests({"containers": [container("1 core")]})


def test_a_node_offers_what_it_reports() -> None:
    reported = {
        "cpu": "1930m",
        "memory": "7260860Ki",
        "ephemeral-storage": "76224326324",
        "pods": "29",
        "nvidia.com/gpu": "1",
        "hugepages-2Mi": "0",
    }
    assert allocatable_resources(reported, attach_limit=25) == Resources(
        cpu_millicores=1930,
        memory_bytes=7260860 * 1024,
        ephemeral_storage_bytes=76224326324,
        pods=29,
        gpus=1,
        volumes=25,
    )
    assert allocatable_resources({}).volumes == NO_ATTACH_LIMIT
