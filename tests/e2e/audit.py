"""What the API server's audit log says that somebody did to nodes and pods: nobody's own account of it counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

OURS = "firstbell:interruption"
"""The Kubernetes group of the function under test."""


@dataclass(frozen=True)
class Write:
    """One finished write. https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/"""

    at: float
    verb: str
    resource: str
    """With its subresource: `pods/eviction`."""
    name: str
    ours: bool
    code: int
    request: dict[str, Any]
    response: dict[str, Any]

    @property
    def uid(self) -> str:
        """The UID that an eviction or deletion was made conditional on."""
        options = self.request.get("deleteOptions") or self.request
        uid: str = (options.get("preconditions") or {}).get("uid", "")
        return uid


def writes(audit_log: Path) -> Iterator[Write]:
    """In the order in which they ended."""
    with audit_log.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line) if line.endswith("\n") else {}
            about = event.get("objectRef") or {}
            if event.get("stage") != "ResponseComplete" or event["verb"] in ("get", "list", "watch"):
                continue
            yield Write(
                at=datetime.fromisoformat(event["stageTimestamp"]).timestamp(),
                verb=event["verb"],
                resource="/".join(filter(None, (about.get("resource", ""), about.get("subresource", "")))),
                name=about.get("name", ""),
                ours=OURS in event["user"].get("groups", ()),
                code=event.get("responseStatus", {}).get("code", 0),
                request=event.get("requestObject") or {},
                response=event.get("responseObject") or {},
            )


def our_cordons(audit_log: Path, node: str) -> list[Write]:
    """Our accepted patches of the node that left it unschedulable."""
    return [
        write
        for write in writes(audit_log)
        if write.ours
        and (write.verb, write.resource, write.name, write.code) == ("patch", "nodes", node, 200)
        and write.response["spec"].get("unschedulable")
    ]


def our_evictions(audit_log: Path) -> list[Write]:
    """Every eviction that we asked for, with whatever answer."""
    return [write for write in writes(audit_log) if write.ours and write.resource == "pods/eviction"]


def our_deletions(audit_log: Path) -> list[Write]:
    return [w for w in writes(audit_log) if w.ours and (w.verb, w.resource) == ("delete", "pods")]


def removed_at(audit_log: Path, uid: str) -> float | None:
    """When a kubelet's last word (a deletion without grace) removed the pod of this UID."""
    for write in writes(audit_log):
        if (write.verb, write.resource, write.code) != ("delete", "pods", 200):
            continue
        if write.request.get("gracePeriodSeconds") == 0 and write.response.get("metadata", {}).get("uid") == uid:
            return write.at
    return None
