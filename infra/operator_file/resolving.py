"""Writes one cluster of the operator's file as the JSON that functions/firstbell/settings.py reads."""

from __future__ import annotations

from datetime import time
from typing import TYPE_CHECKING, Any

from firstbell.capacity.quantities import cpu_millicores, whole_units
from infra.operator_file.fields import DAYS_OF_WEEK, account_of

if TYPE_CHECKING:
    from infra.operator_file.models import ClusterEntry, OperatorFile, PortalEntry
    from infra.operator_file.pools import Interruption, PodRequest, PoolEntry
    from infra.operator_file.schedules import Idle, Window


def resolve(file: OperatorFile, cluster_name: str) -> dict[str, Any]:
    """The settings of one cluster. Raises KeyError for a cluster that the file does not have."""
    cluster = file.cluster(cluster_name)
    if cluster is None:
        raise KeyError(cluster_name)
    return {
        "name": cluster.name,
        "region": cluster.region,
        "default_pool": cluster.default_pool,
        "pools": [_pool(cluster, pool) for pool in cluster.pools],
        "portals": [_portal(portal) for portal in cluster.portals],
        "system_namespaces": cluster.system_namespaces,
        "regions": file.cluster_by_region(),
    }


def group_name(cluster: ClusterEntry, pool: PoolEntry) -> str | None:
    """The pool's Auto Scaling group; None for a managed node group, whose group is looked up at run time."""
    return f"firstbell-{cluster.name}-{pool.name}" if pool.create else pool.asg


def parse_taint(text: str) -> dict[str, str]:
    """`key=value:Effect` as Kubernetes writes it in a node's spec."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _pool(cluster: ClusterEntry, pool: PoolEntry) -> dict[str, Any]:
    return {
        "name": pool.name,
        "group": group_name(cluster, pool),
        "nodegroup": pool.nodegroup,
        "pod": _requests(pool.pod),
        "labels": pool.labels,
        "taints": [parse_taint(text) for text in pool.taints],
        "tolerations": [toleration.model_dump() for toleration in pool.tolerations],
        "mode": pool.mode,
        "networking": pool.networking.model_dump(),
        "lead_minutes": None if pool.lead_minutes == "auto" else pool.lead_minutes,
        "fallback": pool.fallback,
        "spot": pool.spot,
        "stateful": pool.stateful,
        "preemptible": pool.preemptible,
        "idle": None if pool.idle is None else _idle(pool.idle),
        "interruption": _interruption(pool.interruption),
    }


def _interruption(policy: Interruption) -> dict[str, Any]:
    return {
        "spot": policy.spot,
        "rebalance": policy.rebalance,
        "rebalance_ttl_minutes": policy.rebalance_ttl_minutes,
        "before_minutes": policy.scheduled_change.before_minutes,
        "at_deadline": policy.at_deadline,
        "hook": policy.hook,
    }


def _idle(idle: Idle) -> dict[str, Any]:
    return {
        "timezone": idle.timezone,
        "quiet": [_window(window) | {"weekdays": _weekdays(window.days)} for window in idle.quiet],
        "up": [_window(window) | {"weekdays": _weekdays(window.days)} for window in idle.up],
        "holidays": idle.holidays,
        "events": [_window(window) | {"dates": [window.date]} for window in idle.events],
        "idle_minutes": idle.idle_minutes,
        "settle_seconds": idle.settle_seconds,
    }


def _window(window: Window) -> dict[str, Any]:
    return {"begin_minute": _minute_of_day(window.begin), "end_minute": _minute_of_day(window.end)}


def _minute_of_day(text: str) -> int:
    at = time.fromisoformat(text)
    return at.hour * 60 + at.minute


def _weekdays(text: str) -> list[int]:
    """`Sun-Tue,Fri` as days of the week, Monday = 0: a range may pass the end of the week."""
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = DAYS_OF_WEEK.index(first), DAYS_OF_WEEK.index(last or first)
        days.update((begin + step) % 7 for step in range((end - begin) % 7 + 1))
    return sorted(days)


def _requests(pod: PodRequest) -> dict[str, int]:
    return {
        "cpu_millicores": cpu_millicores(pod.cpu),
        "memory_bytes": whole_units(pod.memory),
        "ephemeral_storage_bytes": whole_units(pod.ephemeral_storage),
        "gpus": pod.gpu,
    }


def _portal(portal: PortalEntry) -> dict[str, Any]:
    return {
        "name": portal.name,
        "account": account_of(portal.principal),
        "source": portal.source,
        "max_pods": portal.max_pods,
        "max_reserved_hours": portal.max_reserved_hours,
    }
