"""PodDisruptionBudgets: which pods they select. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firstbell.capacity.scheduling import selects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firstbell.capacity.cluster_view import Pod


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a label selector (k8s.io/apimachinery/pkg/apis/meta/v1 LabelSelectorRequirement)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
        return False


@dataclass(frozen=True, slots=True)
class Budget:
    """An empty selector selects every pod of the namespace (policy/v1)."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    requirements: tuple[Requirement, ...] = ()

    def covers(self, pod: Pod) -> bool:
        return (
            pod.namespace == self.namespace
            and selects(self.labels, pod.labels)
            and all(requirement.matches(pod.labels) for requirement in self.requirements)
        )
