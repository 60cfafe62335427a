"""Replacing functions of ministack, with proof at start that they still are what the replacement was written for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

WRITTEN_FOR = "1.5.33"


class UpstreamChanged(RuntimeError):
    """ministack no longer has the shape that an extension relies on."""


def require_version() -> None:
    """The extensions rest on internals, so they rest on one version. UpstreamChanged on any other."""
    found = version("ministack")
    if found != WRITTEN_FOR:
        raise UpstreamChanged(f"localcloud/aws was written for ministack {WRITTEN_FOR}, this is {found}")


def replace(module: Any, name: str, parameters: str, replacement: Callable[..., Any]) -> Callable[..., Any]:
    """Put `replacement` in the place of `module.name` and return the original.

    `parameters` are the original's parameter names, separated by spaces: UpstreamChanged where they differ.
    """
    original: Callable[..., Any] | None = getattr(module, name, None)
    if original is None:
        raise UpstreamChanged(f"{module.__name__}.{name} is gone")
    found = " ".join(inspect.signature(original).parameters)
    if found != parameters:
        raise UpstreamChanged(f"{module.__name__}.{name} takes ({found}), expected ({parameters})")
    setattr(module, name, replacement)
    return original


def require(module: Any, *names: str) -> None:
    """UpstreamChanged unless `module` has all of `names`, which an extension reads or sets."""
    for name in names:
        if not hasattr(module, name):
            raise UpstreamChanged(f"{module.__name__}.{name} is gone")
