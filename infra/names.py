"""Names of what is deployed for a cluster. The command line and other regions' stacks rely on them."""

from __future__ import annotations

OUTCOME_SOURCE = "firstbell"
DRILL_SOURCE = "firstbell.drill"


def stack_name(cluster: str) -> str:
    return f"firstbell-{cluster}"


def bus_name(cluster: str) -> str:
    return f"firstbell-{cluster}"


def table_name(cluster: str) -> str:
    return f"firstbell-{cluster}"


def function_name(cluster: str, capability: str) -> str:
    return f"firstbell-{cluster}-{capability}"


def forwarding_role_name(cluster: str) -> str:
    """Role that carries signals from this cluster's bus to those of other regions, whose policies name it."""
    return f"firstbell-{cluster}-forward"


def kubernetes_group(capability: str) -> str:
    """Group that infra/rbac.yaml binds the function's ClusterRole to."""
    return f"firstbell:{capability}"
