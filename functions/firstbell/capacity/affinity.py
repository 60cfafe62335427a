"""Required node affinity, as kube-scheduler matches it (k8s.io/component-helpers/scheduling/corev1/nodeaffinity)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Requirement:
    """One `matchExpressions` entry. `operator`: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """NotIn and DoesNotExist also match a node without the label; Gt and Lt compare integers."""
        value = labels.get(self.key)
        return {
            "In": value in self.values,
            "NotIn": value not in self.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
            "Gt": _compared(value, self.values) > 0,
            "Lt": _compared(value, self.values) < 0,
        }.get(self.operator, False)


Terms = tuple[tuple[Requirement, ...], ...]
"""nodeSelectorTerms: one of the terms has to match, by all of its requirements. Empty = no affinity."""


def matches(terms: Terms, labels: Mapping[str, str]) -> bool:
    """Whether a node with `labels` satisfies the required affinity. A term without requirements matches no node."""
    return not terms or any(term and all(one.matches(labels) for one in term) for term in terms)


def required_terms(spec: Mapping[str, Any]) -> Terms:
    """The required node affinity of a pod spec (JSON). `matchFields` name single nodes and are not read."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return tuple(
        tuple(
            Requirement(entry["key"], entry["operator"], tuple(entry.get("values") or ()))
            for entry in term.get("matchExpressions") or ()
        )
        for term in required.get("nodeSelectorTerms") or ()
    )


def _compared(value: str | None, values: tuple[str, ...]) -> int:
    try:
        return int(value or "") - int(values[0])
    except (ValueError, IndexError):
        return 0
