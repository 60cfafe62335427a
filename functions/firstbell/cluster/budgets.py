"""PodDisruptionBudgets: JSON to `capacity.budgets.Budget`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firstbell.capacity.budgets import Budget, Requirement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firstbell.cluster.client import ApiServer


def parse_budget(raw: Mapping[str, Any]) -> Budget | None:
    """None for a budget without a selector, which selects nothing (policy/v1)."""
    selector = (raw.get("spec") or {}).get("selector")
    if selector is None:
        return None
    return Budget(
        namespace=(raw.get("metadata") or {}).get("namespace", ""),
        labels=selector.get("matchLabels") or {},
        requirements=tuple(
            Requirement(entry.get("key", ""), entry.get("operator", ""), tuple(entry.get("values") or ()))
            for entry in selector.get("matchExpressions") or ()
        ),
    )


def list_budgets(api: ApiServer) -> list[Budget]:
    return api.list_all("/apis/policy/v1/poddisruptionbudgets", parse_budget)
