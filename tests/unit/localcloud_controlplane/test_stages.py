"""What kwok is told."""

from __future__ import annotations

from typing import Any

import yaml

from localcloud.controlplane.stages import kwok_configuration


def stages(*, image_pull_seconds: float = 3.2, start_seconds: float = 0.5) -> dict[str, Any]:
    written = kwok_configuration(image_pull_seconds=image_pull_seconds, start_seconds=start_seconds)
    documents = yaml.safe_load_all(written)
    return {found["metadata"]["name"]: found["spec"] for found in documents if found["kind"] == "Stage"}


def test_pods_take_the_configured_times() -> None:
    told = stages(image_pull_seconds=3.2, start_seconds=0.5)

    assert told["pod-pulls-image"]["delay"] == {"durationMilliseconds": 3200}
    assert told["pod-starts"]["delay"] == {"durationMilliseconds": 500}


def test_the_pulled_event_names_the_time_that_the_pull_takes() -> None:
    event = stages(image_pull_seconds=3.2)["pod-pulls-image"]["steps"][0]["apply"]["template"]

    assert "in 3.2s (3.2s including waiting)" in event
    assert "involvedObject:" in event


def test_no_placeholder_is_left() -> None:
    written = kwok_configuration(image_pull_seconds=1, start_seconds=1)

    assert "IMAGE_PULL_DURATION" not in written
    assert "EVENT\n" not in written


def test_a_nodes_size_is_never_written() -> None:
    for step in stages()["node-reports-ready"]["steps"]:
        assert "allocatable" not in step["patch"]["template"]
        assert "capacity" not in step["patch"]["template"]
