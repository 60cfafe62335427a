"""The numbers of the morning, from the API server's audit log and the group authority's own record of calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

LONGEST_UNNOTICED_SECONDS = 1.0


@dataclass(frozen=True)
class PodTimes:
    """When the API server accepted a pod, and when it accepted the scheduler's binding (Unix seconds)."""

    created: float
    bound: float | None = None

    @property
    def pending_seconds(self) -> float:
        """From creation to binding; infinite where it was never bound."""
        return float("inf") if self.bound is None else max(0.0, self.bound - self.created)


@dataclass(frozen=True)
class Raise:
    """A call that raised a group's desired capacity: when (Unix seconds), and to what."""

    at: float
    desired: int


def pod_times(audit_lines: Iterable[str]) -> dict[str, PodTimes]:
    """Every pod that was created, by name, with its creation and its first binding, whatever the order of the lines:
    two requests at once may be logged the other way round.

    https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/
    """
    created: dict[str, float] = {}
    bound: dict[str, float] = {}
    for line in audit_lines:
        if '"pods"' not in line:
            continue
        entry = json.loads(line)
        about = entry.get("objectRef", {})
        if entry.get("verb") != "create" or about.get("resource") != "pods" or not _accepted(entry):
            continue
        moment = unix_seconds(entry["stageTimestamp"])
        subresource = about.get("subresource")
        name = about.get("name") or entry.get("responseObject", {}).get("metadata", {}).get("name")
        if subresource is None:
            created[name] = moment
        elif subresource == "binding":
            bound.setdefault(name, moment)
    return {name: PodTimes(created=moment, bound=bound.get(name)) for name, moment in created.items()}


def raises(calls: Iterable[str], group: str) -> list[Raise]:
    """The accepted calls that raised a group's desired capacity above what it was, from the fleet's record of calls."""
    desired, found = 0, []
    for line in calls:
        call = json.loads(line)
        parameters = call["parameters"]
        if call["error"] or parameters.get("AutoScalingGroupName") != group or "DesiredCapacity" not in parameters:
            continue
        before, desired = desired, int(parameters["DesiredCapacity"])
        if desired > before:
            found.append(Raise(call["time"], desired))
    return found


def first_deletion(audit_lines: Iterable[str], pods: Iterable[str]) -> str | None:
    """Name of a pod of these that somebody deleted or evicted, None when nobody did."""
    watched = set(pods)
    for line in audit_lines:
        if '"pods"' not in line:
            continue
        entry = json.loads(line)
        about = entry.get("objectRef", {})
        if about.get("resource") != "pods" or about.get("name") not in watched or not _accepted(entry):
            continue
        if entry.get("verb") == "delete" or about.get("subresource") == "eviction":
            return str(about["name"])
    return None


def longest_waits(times: Mapping[str, PodTimes]) -> list[float]:
    """Each pod's seconds from creation to binding, the shortest first."""
    return sorted(each.pending_seconds for each in times.values())


def pending_over(times: Mapping[str, PodTimes], seconds: float = LONGEST_UNNOTICED_SECONDS) -> int:
    return sum(1 for wait in longest_waits(times) if wait > seconds)


def quantile(waits: list[float], share: float) -> float:
    """The smallest wait that at least this share of pods did not exceed (nearest rank); waits sorted."""
    if not waits:
        return 0.0
    return waits[min(len(waits) - 1, max(0, -int(-share * len(waits) // 1) - 1))]


def unix_seconds(moment: str) -> float:
    """RFC 3339 as the audit log writes it ("2026-12-01T07:55:00.123456Z")."""
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()


def _accepted(entry: Mapping[str, Any]) -> bool:
    return entry.get("stage") == "ResponseComplete" and 200 <= entry.get("responseStatus", {}).get("code", 0) < 300
