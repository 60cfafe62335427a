"""PodDisruptionBudgets as the API server sends them."""

from __future__ import annotations

from firstbell.capacity.budgets import Budget, Requirement
from firstbell.cluster.budgets import parse_budget


def test_a_budgets_selector_is_read_whole() -> None:
    selector = {
        "matchLabels": {"k8s-app": "kube-dns"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "x", "operator": "Exists"},
        ],
    }
    raw = {"metadata": {"namespace": "kube-system"}, "spec": {"minAvailable": 1, "selector": selector}}
    requirements = (Requirement("tier", "In", ("a", "b")), Requirement("x", "Exists"))
    assert parse_budget(raw) == Budget("kube-system", {"k8s-app": "kube-dns"}, requirements)


def test_an_empty_selector_selects_all_and_an_absent_one_nothing() -> None:
    assert parse_budget({"metadata": {"namespace": "default"}, "spec": {"selector": {}}}) == Budget("default")
    assert parse_budget({"metadata": {"namespace": "default"}, "spec": {}}) is None
