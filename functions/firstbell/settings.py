"""What the operator's file says, as it was resolved at synth and bundled into the function's asset.

`infra/operator_file.py` validates `firstbell.yaml` and writes the resolved JSON; here it is only read, so that a cold
start parses one small JSON document and imports no validator.
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstbell.capacity.idle_policy import idle_policy_from_document
from firstbell.capacity.pools import InterruptionPolicy, Networking, Pool
from firstbell.capacity.resources import Resources
from firstbell.capacity.scheduling import Taint, Toleration
from firstbell.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

RESOLVED_FILE = "firstbell.json"
"""Name of the resolved operator's file at the root of the zip (beside the `firstbell` package)."""


@dataclass(frozen=True, slots=True)
class Portal:
    """Who may signal. A signal is attributed to the portal by the envelope's (account, source)."""

    name: str
    account: str
    source: str
    max_pods: int
    """Most pods that all its live reservations together may ask for."""
    max_reserved_hours: float
    """Longest that one of its reservations may live, from now (or starts_at) to ends_at, in hours."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The one cluster that this stack serves."""

    name: str
    region: str
    default_pool: str
    pools: tuple[Pool, ...]
    portals: tuple[Portal, ...] = ()
    system_namespaces: tuple[str, ...] = ("kube-system",)
    regions: Mapping[str, str] = field(default_factory=dict)
    """Every listed region -> the cluster that serves it (this one's own region included)."""

    def pool(self, name: str) -> Pool | None:
        return next((pool for pool in self.pools if pool.name == name), None)


@dataclass(frozen=True, slots=True)
class Deployment:
    """Names of what was deployed around the function, from its environment."""

    bus_name: str
    ledger_table: str


def deployment_from_environment() -> Deployment:
    """FIRSTBELL_BUS and FIRSTBELL_LEDGER; raises ConfigurationError naming the missing one."""
    return Deployment(bus_name=variable("FIRSTBELL_BUS"), ledger_table=variable("FIRSTBELL_LEDGER"))


def variable(name: str) -> str:
    """Of the function's environment; raises ConfigurationError where it is not set."""
    value = os.environ.get(name, "")
    if not value:
        raise ConfigurationError(f"environment variable {name} is not set; the stack sets it on this function")
    return value


@functools.cache
def load_cluster(path: str | None = None) -> Cluster:
    """The resolved file beside the package (or FIRSTBELL_FILE), read once per environment."""
    chosen = Path(path or os.environ.get("FIRSTBELL_FILE") or Path(__file__).parent.parent / RESOLVED_FILE)
    try:
        document = json.loads(chosen.read_text())
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{chosen}: the resolved operator's file cannot be read: {error}") from error
    return parse_cluster(document)


def parse_cluster(document: Mapping[str, Any]) -> Cluster:
    """A resolved document (see `infra/operator_file.py:resolve`) as settings."""
    return Cluster(
        name=document["name"],
        region=document["region"],
        default_pool=document["default_pool"],
        pools=tuple(_pool(entry) for entry in document["pools"]),
        portals=tuple(Portal(**entry) for entry in document.get("portals", ())),
        system_namespaces=tuple(document.get("system_namespaces", ("kube-system",))),
        regions=dict(document.get("regions", {document["region"]: document["name"]})),
    )


def _pool(entry: Mapping[str, Any]) -> Pool:
    taints = tuple(Taint(**taint) for taint in entry.get("taints", ()))
    derived = tuple(Toleration(key=t.key, value=t.value, effect=t.effect) for t in taints)
    return Pool(
        name=entry["name"],
        pod=Resources(**entry["pod"], pods=1),
        labels=dict(entry.get("labels", {})),
        taints=taints,
        tolerations=derived + tuple(Toleration(**t) for t in entry.get("tolerations", ())),
        group=entry.get("group"),
        nodegroup=entry.get("nodegroup"),
        mode=entry.get("mode", "act"),
        networking=Networking(**entry.get("networking", {})),
        lead_minutes=entry.get("lead_minutes"),
        fallback=tuple(entry.get("fallback", ())),
        spot=entry.get("spot", False),
        stateful=entry.get("stateful", False),
        preemptible=dict(entry.get("preemptible", {})),
        interruption=InterruptionPolicy(**entry.get("interruption", {})),
        idle=idle_policy_from_document(entry["idle"]) if entry.get("idle") else None,
    )
