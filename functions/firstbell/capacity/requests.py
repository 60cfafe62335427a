"""What a pod asks for and what a node offers, out of their Kubernetes JSON, as kube-scheduler counts.

Sources: k8s.io/component-helpers/resource/helpers.go (`PodRequests`); pkg/scheduler/framework/types.go (`Add`);
pkg/apis/core/v1/defaults.go (a container's request that is missing is its limit).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from firstbell.capacity.quantities import parse_quantity, whole_units
from firstbell.capacity.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_ATTACH_LIMIT = 2**31 - 1
"""`volumes` of a node whose CSINode names no limit: kube-scheduler then attaches without counting."""

_COUNTED = ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu")
_POD_LEVEL = ("cpu", "memory")
"""What `spec.resources` may set for the pod as a whole (hugepages too, which we do not place by)."""

_Amounts = tuple[Fraction, ...]  # in the order of _COUNTED
_NOTHING: _Amounts = (Fraction(0),) * len(_COUNTED)


def pod_requests(spec: Mapping[str, Any], volumes: int = 0) -> Resources:
    """The effective request of a pod (or a pod template), `pods=1`; `volumes` = its CSI volumes with an attach limit.

    Per resource: the larger of all containers with sidecars, and any init container with the sidecars started before
    it; what `spec.resources` sets for the pod replaces that; the runtime class's overhead is added. Raises
    InvalidQuantity.
    """
    running = sidecars = starting = _NOTHING
    for container in spec.get("containers") or ():
        running = _sum(running, _container(container))
    for container in spec.get("initContainers") or ():
        own = _container(container)
        if container.get("restartPolicy") == "Always":
            running, sidecars = _sum(running, own), _sum(sidecars, own)
            starting = _largest(starting, sidecars)
        else:
            starting = _largest(starting, _sum(sidecars, own))
    pod_level = (spec.get("resources") or {}).get("requests") or {}
    effective = tuple(
        parse_quantity(pod_level[name]) if name in _POD_LEVEL and name in pod_level else amount
        for name, amount in zip(_COUNTED, _largest(running, starting), strict=True)
    )
    return _resources(_sum(effective, _amounts(spec.get("overhead"))), pods=1, volumes=volumes)


def allocatable_resources(allocatable: Mapping[str, Any], attach_limit: int | None = None) -> Resources:
    """A node's `status.allocatable`, with its CSINode's attach limit (None = it names none). Raises InvalidQuantity."""
    return _resources(
        _amounts(allocatable),
        pods=whole_units(allocatable.get("pods", 0)),
        volumes=NO_ATTACH_LIMIT if attach_limit is None else attach_limit,
    )


def _container(container: Mapping[str, Any]) -> _Amounts:
    resources = container.get("resources") or {}
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(listed: Mapping[str, Any] | None) -> _Amounts:
    return tuple(parse_quantity(listed.get(name, 0)) for name in _COUNTED) if listed else _NOTHING


def _sum(one: _Amounts, other: _Amounts) -> _Amounts:
    return tuple(map(Fraction.__add__, one, other))


def _largest(one: _Amounts, other: _Amounts) -> _Amounts:
    return tuple(map(max, one, other))


def _resources(amounts: _Amounts, pods: int, volumes: int) -> Resources:
    cpu, memory, ephemeral_storage, gpus = amounts
    return Resources(
        cpu_millicores=math.ceil(cpu * 1000),
        memory_bytes=math.ceil(memory),
        ephemeral_storage_bytes=math.ceil(ephemeral_storage),
        gpus=math.ceil(gpus),
        pods=pods,
        volumes=volumes,
    )
