"""Which tests run side by side: `make test` uses two workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")
"""How long an example takes says nothing while other workers take the machine; what has to be fast is in bench/."""

HERE = Path(__file__).parent
SHARING = ("e2e", "infra", "functional/localcloud_aws")
"""Folders whose tests share something costly (a local cloud, a synth, an emulated AWS): one worker runs all of each."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group what shares, and every other file by itself; the folder that takes longest comes first."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item.path.relative_to(HERE).as_posix())))
    items.sort(key=lambda item: not item.path.is_relative_to(HERE / "e2e"))


def group_of(path: str) -> str:
    return next((folder for folder in SHARING if path.startswith(f"{folder}/")), path)
