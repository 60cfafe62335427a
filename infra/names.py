"""Names of what is deployed for a cluster. The command line and other regions' stacks rely on them."""

from __future__ import annotations

import hashlib

OUTCOME_SOURCE = "firstbell"
DRILL_SOURCE = "firstbell.drill"
SIGNALS = ["Demand Signal", "Demand Cancelled"]
MOST_CHARACTERS = 40
MOST_OF_AN_ARCHIVE = 48


def stack_name(cluster: str) -> str:
    """CloudFormation takes no underscore, which EKS does."""
    return f"firstbell-{cluster.replace('_', '-')}"


def bus_name(cluster: str) -> str:
    return f"firstbell-{cluster}"


def archive_name(cluster: str) -> str:
    return f"firstbell-{_short(cluster, MOST_OF_AN_ARCHIVE - len('firstbell-'))}"


def table_name(cluster: str) -> str:
    return f"firstbell-{cluster}"


def function_name(cluster: str, capability: str) -> str:
    return f"firstbell-{_short(cluster)}-{capability}"


def forwarding_role_name(cluster: str) -> str:
    """Role that carries signals from this cluster's bus to those of other regions, whose policies name it."""
    return f"firstbell-{_short(cluster)}-forward"


def kubernetes_group(capability: str) -> str:
    """Group that infra/rbac.yaml binds the function's ClusterRole to."""
    return f"firstbell:{capability}"


def _short(cluster: str, most: int = MOST_CHARACTERS) -> str:
    """EKS takes names of 100 characters; functions, roles and schedules take 64, with what stands around it."""
    if len(cluster) <= most:
        return cluster
    return f"{cluster[: most - 9]}-{hashlib.sha256(cluster.encode()).hexdigest()[:8]}"
