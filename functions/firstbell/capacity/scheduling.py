"""Taints, tolerations and node selectors, as kube-scheduler matches them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str = ""
    effect: str = "NoSchedule"
    time_added: str = field(default="", compare=False)
    """timeAdded as Kubernetes wrote it. A node's taints are an atomic list, so whoever patches it writes this back."""

    @property
    def repels(self) -> bool:
        """Whether an intolerant pod is kept off. PreferNoSchedule only scores (TaintToleration plugin)."""
        return self.effect in ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """`Toleration.ToleratesTaint` (k8s.io/api/core/v1): empty effect or key match all; Exists ignores the value."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.operator in ("", "Equal") and self.value == taint.value


def tolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> bool:
    """Whether every taint that repels is tolerated."""
    tolerations = tuple(tolerations)
    return all(any(t.tolerates(taint) for t in tolerations) for taint in taints if taint.repels)


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a nodeSelector (or an equality-only label selector) matches `labels`."""
    return all(labels.get(key) == value for key, value in selector.items())
