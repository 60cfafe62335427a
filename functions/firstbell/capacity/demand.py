"""Which pods a pool has yet to have room for. Pure.

A reservation asks for `pods`; those that have arrived are subtracted, and a Pending pod is demand until it is bound,
counted once: either as part of what its reservation still waits for, or beyond it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firstbell.capacity.placement import Demand, PodShape
from firstbell.capacity.pools import pool_of
from firstbell.capacity.reservations import REFERENCE_LABEL, Reservation, oldest_first
from firstbell.capacity.scheduling import selects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from firstbell.capacity.cluster_view import Pod
    from firstbell.capacity.pools import Pool

UNRESERVED = ""
"""Key of the demand of Pending pods that no reservation of the pool announced."""


def is_user_pod(pod: Pod, pool: Pool, system_namespaces: Sequence[str]) -> bool:
    """Not of a DaemonSet, not a mirror pod, not a system pod, and not one whose place is free (preemptible)."""
    return (
        pod.owner_kind != "DaemonSet"
        and not pod.mirror
        and pod.namespace not in system_namespaces
        and not (pool.preemptible and selects(pool.preemptible, pod.labels))
    )


def pending_pods_of(
    pool: Pool, pools: Sequence[Pool], pods: Iterable[Pod], system_namespaces: Sequence[str]
) -> list[Pod]:
    """User pods that wait for a node of this pool, the oldest first."""
    waiting = (
        p
        for p in pods
        if not p.bound and not p.terminating and is_user_pod(p, pool, system_namespaces) and pool_of(p, pools) is pool
    )
    return sorted(waiting, key=lambda p: (p.created_at, p.uid))


@dataclass(frozen=True, slots=True)
class PoolDemand:
    """What a pool has yet to have room for, keyed by reference (or UNRESERVED), and who has arrived."""

    items: tuple[Demand, ...] = ()
    arrived: Mapping[str, int] = field(default_factory=dict)

    def pods(self, key: str) -> int:
        return sum(item.pods for item in self.items if item.key == key)


def pool_demand(
    pool: Pool,
    live: Sequence[Reservation],
    *,
    bound: Iterable[Pod],
    pending: Sequence[Pod],
    lead_seconds: float,
) -> PoolDemand:
    """Demand of `pool` for its live reservations, given the user pods bound to its nodes and those waiting for it.

    Without a live reservation there is none: Pending pods alone are the reactive autoscaler's business, and alarm.
    """
    if not live:
        return PoolDemand()
    reservations = oldest_first(live)
    opens_at = {r.reference: r.starts_at - lead_seconds for r in reservations}
    arrived = {r.reference: 0 for r in reservations}
    for reference in _attributed(bound, reservations, opens_at, room=lambda r: r.pods):
        if reference is not None:
            arrived[reference] += 1
    outstanding = {r.reference: max(0, r.pods - arrived[r.reference]) for r in reservations}
    shapes: Counter[tuple[str, PodShape]] = Counter()
    waiting: Counter[str] = Counter()
    attributed = _attributed(pending, reservations, opens_at, room=lambda r: outstanding[r.reference])
    for pod, reference in zip(_in_order(pending), attributed, strict=True):
        shapes[reference or UNRESERVED, _shape(pod)] += 1
        waiting[reference or UNRESERVED] += 1
    for reservation in reservations:
        to_come = outstanding[reservation.reference] - waiting[reservation.reference]
        if to_come > 0:
            shapes[reservation.reference, PodShape(requests=reservation.pod, tolerations=pool.tolerations)] += to_come
    items = tuple(Demand(key=key, shape=shape, pods=count) for (key, shape), count in shapes.items())
    return PoolDemand(items=items, arrived=arrived)


def _in_order(pods: Iterable[Pod]) -> list[Pod]:
    """Labelled pods first, since they have no choice; then by age."""
    return sorted(pods, key=lambda p: (REFERENCE_LABEL not in p.labels, p.created_at, p.uid))


def _attributed(
    pods: Iterable[Pod],
    reservations: Sequence[Reservation],
    opens_at: Mapping[str, float],
    *,
    room: Callable[[Reservation], int],
) -> Iterator[str | None]:
    """For each pod `_in_order`, the reservation that it comes for; None for none.

    A pod comes for the reservation that its label names, however many have come; without the label, for the oldest that
    has `room`. One that is older than a reservation's opening did not come for it.
    """
    filled = dict.fromkeys(opens_at, 0)
    for pod in _in_order(pods):
        named = pod.labels.get(REFERENCE_LABEL)
        candidates = (
            r.reference
            for r in reservations
            if pod.created_at >= opens_at[r.reference]
            and (r.reference == named if named is not None else filled[r.reference] < room(r))
        )
        reference = next(candidates, None)
        if reference is not None:
            filled[reference] += 1
        yield reference


def _shape(pod: Pod) -> PodShape:
    return PodShape(requests=pod.requests, tolerations=pod.tolerations, zones=pod.zones)
