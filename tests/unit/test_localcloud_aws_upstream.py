from __future__ import annotations

from types import ModuleType

import pytest

from localcloud.aws import upstream
from localcloud.aws.upstream import UpstreamChanged, replace, require, require_version


def module() -> ModuleType:
    made = ModuleType("emulator")
    made.put_events = lambda data, region: (data, region)  # type: ignore[attr-defined]
    return made


def test_a_function_of_the_expected_shape_is_replaced_and_returned() -> None:
    emulator = module()
    original = replace(emulator, "put_events", "data region", lambda data, region: None)
    assert original(1, 2) == (1, 2)
    assert emulator.put_events(1, 2) is None


@pytest.mark.parametrize(("name", "parameters"), [("put_events", "data"), ("put_event", "data region")])
def test_a_changed_or_missing_function_ends_the_start(name: str, parameters: str) -> None:
    with pytest.raises(UpstreamChanged, match="emulator"):
        replace(module(), name, parameters, lambda: None)


def test_a_missing_name_ends_the_start() -> None:
    with pytest.raises(UpstreamChanged, match=r"emulator\._queues is gone"):
        require(module(), "put_events", "_queues")


def test_another_version_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    require_version()
    monkeypatch.setattr(upstream, "version", lambda _: "2.0.0")
    with pytest.raises(UpstreamChanged, match="this is 2"):
        require_version()
