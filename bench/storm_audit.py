"""What a storm did to nodes and pods, from the API server's audit log alone: nobody's own account of it counts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

BOUND_TOO_LATE_SECONDS = 5.0
"""A replacement that is bound to a node noticed longer ago than this went from one doomed node to the next."""


@dataclass
class Storm:
    """Times are Unix seconds."""

    cordoned: dict[str, float] = field(default_factory=dict)
    """Node -> when it first was unschedulable."""
    evicted: list[str] = field(default_factory=list)
    """Names of pods, once for each eviction or deletion that somebody asked for and got."""
    bound: list[tuple[str, str, float]] = field(default_factory=list)
    """(pod, node, when)"""
    gone: dict[str, float] = field(default_factory=dict)
    """Pod -> when it was removed for good."""


def read_storm(audit_log: Path, namespace: str, since: float) -> Storm:
    """Everything after `since` that concerns the nodes, and the pods of one namespace."""
    storm = Storm()
    for event in _events(audit_log):
        when = datetime.fromisoformat(event["stageTimestamp"]).timestamp()
        if when < since:
            continue
        about, verb = event["objectRef"], event["verb"]
        name = about.get("name", "")
        response = event.get("responseObject") or {}
        if about["resource"] == "nodes" and (response.get("spec") or {}).get("unschedulable"):
            storm.cordoned.setdefault(name, when)
        if about["resource"] != "pods" or about.get("namespace") != namespace:
            continue
        match about.get("subresource", ""), verb:
            case "binding", "create":
                storm.bound.append((name, event["requestObject"]["target"]["name"], when))
            case "eviction", "create":
                storm.evicted.append(name)
            case "", "delete":
                if _ends_at_once(event):
                    storm.gone[name] = when
                else:
                    storm.evicted.append(name)
    return storm


def figures(
    storm: Storm, noticed: Mapping[str, float], originals: Collection[str], *, running: int, wanted: int
) -> dict[str, Any]:
    """`noticed`: doomed node -> when its notice was sent; `originals`: the pods that ran there then."""
    began = min(noticed.values())
    cordons = sorted(storm.cordoned[node] - began for node in noticed if node in storm.cordoned)
    gone = [storm.gone[pod] - began for pod in originals if pod in storm.gone]
    whole = len(cordons) == len(noticed)
    late = sum(when - noticed[node] > BOUND_TOO_LATE_SECONDS for pod, node, when in storm.bound if node in noticed)
    return {
        "first_cordon_s": round(cordons[0], 2) if cordons else None,
        "all_cordoned_s": round(cordons[-1], 2) if whole else None,
        "all_gone_s": round(max(gone), 2) if len(gone) == len(originals) else None,
        "lost": len(noticed) - len(cordons) + max(0, wanted - running),
        "re_evicted_pods": sum(pod not in originals for pod in storm.evicted),
        "evictions": len(storm.evicted),
        "bound_to_doomed_nodes": late,
    }


def _events(audit_log: Path) -> Iterator[dict[str, Any]]:
    """Finished, successful writes to nodes and pods."""
    with audit_log.open(encoding="utf-8") as lines:
        for line in lines:
            if '"resource":"pods"' not in line and '"resource":"nodes"' not in line:
                continue
            event = json.loads(line)
            if event["stage"] == "ResponseComplete" and event.get("responseStatus", {}).get("code", 500) < 300:
                yield event


def _ends_at_once(event: Mapping[str, Any]) -> bool:
    """Whether a deletion is the kubelet's last word: it asks for no grace."""
    options = event.get("requestObject") or {}
    return options.get("gracePeriodSeconds") == 0
