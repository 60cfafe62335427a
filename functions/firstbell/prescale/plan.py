"""Whether a signal becomes a reservation. Pure: the clock, the settings and what is stored are arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.capacity.quantities import InvalidQuantity, cpu_millicores, whole_units
from firstbell.capacity.reservations import Reservation, cancel, promised_pods, supersedes
from firstbell.capacity.resources import Resources

if TYPE_CHECKING:
    from collections.abc import Iterable

    from firstbell.capacity.pools import Pool
    from firstbell.settings import Cluster, Portal

DEFAULT_HOLD_MINUTES = 60
FURTHEST_START_SECONDS = 366 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a signal came from, as EventBridge's envelope says it."""

    event_id: str
    account: str
    source: str
    sent_at: float


@dataclass(frozen=True, slots=True)
class PodDemand:
    cpu: str | None = None
    memory: str | None = None
    gpu: int | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """A signal whose fields are valid one by one. Times are Unix seconds."""

    region: str
    pods: int
    reference: str | None = None
    revision: int | None = None
    cluster: str | None = None
    pool: str | None = None
    pod: PodDemand = PodDemand()
    starts_at: float | None = None
    ends_at: float | None = None
    hold_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class Cancellation:
    reference: str
    region: str | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class Admitted:
    """To be stored, in place of `replaces`."""

    reservation: Reservation
    replaces: Reservation | None


@dataclass(frozen=True, slots=True)
class Repeated:
    """Nothing newer than what is stored: a duplicate, a late delivery, or a retry of one that got this far."""

    pool: str = ""
    """Where it stands, if it does."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Never to be retried. `problems` are (field, what is wrong and what is allowed)."""

    problems: tuple[tuple[str, str], ...]


def portal_of(origin: Origin, cluster: Cluster) -> Portal | None:
    """The portal that is allowed to send from this account under this source."""
    return next((p for p in cluster.portals if (p.account, p.source) == (origin.account, origin.source)), None)


def admit(
    demand: Demand, origin: Origin, *, cluster: Cluster, stored: Iterable[Reservation], now: float
) -> Admitted | Repeated | Refused:
    """Decides on one signal. Everything that is wrong is named at once."""
    stored = tuple(stored)
    portal = portal_of(origin, cluster)
    if portal is None:
        return _unlisted(origin, cluster)
    problems = _addressed_elsewhere(demand.region, demand.cluster, cluster)
    pool = cluster.pool(demand.pool or cluster.default_pool)
    if pool is None:
        allowed = ", ".join(p.name for p in cluster.pools)
        problems.append(("pool", f"is {demand.pool!r}; allowed: {allowed}"))
    starts_at = demand.starts_at if demand.starts_at is not None else origin.sent_at
    hold_seconds = 60 * (demand.hold_minutes or DEFAULT_HOLD_MINUTES)
    ends_at = demand.ends_at if demand.ends_at is not None else starts_at + hold_seconds
    problems += _window_problems(starts_at, ends_at, now)
    pod, pod_problems = _pod(demand.pod, pool)
    problems += pod_problems
    if problems or pool is None:
        return Refused(tuple(problems))
    wanted = Reservation(
        reference=demand.reference or origin.event_id,
        pool=pool.name,
        pods=demand.pods,
        pod=pod,
        starts_at=starts_at,
        ends_at=ends_at,
        signalled_at=origin.sent_at,
        received_at=now,
        portal=portal.name,
        revision=demand.revision,
        event_ids=(origin.event_id,),
    )
    return _against_stored(wanted, portal, stored, now)


def _against_stored(
    wanted: Reservation, portal: Portal, stored: tuple[Reservation, ...], now: float
) -> Admitted | Repeated | Refused:
    earlier = next((r for r in stored if r.reference == wanted.reference), None)
    if earlier is not None and earlier.portal != wanted.portal:
        return _used_by_another(wanted.reference)
    if earlier is not None and not supersedes(wanted, earlier):
        return Repeated(earlier.pool)
    if refusal := _beyond_caps(wanted, portal, stored, now):
        return refusal
    return Admitted(wanted.in_place_of(earlier) if earlier else wanted, replaces=earlier)


def _used_by_another(reference: str) -> Refused:
    return Refused((("reference", f"is {reference!r}, which another portal uses; choose another"),))


def _unlisted(origin: Origin, cluster: Cluster) -> Refused:
    allowed = ", ".join(f"{p.source} from account {p.account}" for p in cluster.portals) or "no portal is listed"
    return Refused((("source", f"is {origin.source!r} from account {origin.account}; allowed: {allowed}"),))


def _addressed_elsewhere(region: str | None, name: str | None, cluster: Cluster) -> list[tuple[str, str]]:
    """What is wrong with the region and the cluster that an event names, if it names them."""
    problems = []
    if region is not None and region not in cluster.regions:
        problems.append(("region", f"is {region!r}; allowed: {', '.join(sorted(cluster.regions))}"))
    elif region is not None and region != cluster.region:
        problems.append(("region", f"is {region!r}, which cluster {cluster.regions[region]} serves"))
    if name is not None and name != cluster.name:
        problems.append(("cluster", f"is {name!r}; this bus serves {cluster.name}"))
    return problems


def _window_problems(starts_at: float, ends_at: float, now: float) -> list[tuple[str, str]]:
    if ends_at <= starts_at:
        return [("ends_at", "is not after starts_at; allowed: a time after it")]
    if ends_at <= now:
        return [("ends_at", f"is {now - ends_at:.0f} s in the past: expired; allowed: a time to come")]
    if starts_at > now + FURTHEST_START_SECONDS:
        return [("starts_at", "is more than 366 days ahead; allowed: at most 366 days")]
    return []


def _pod(asked: PodDemand, pool: Pool | None) -> tuple[Resources, list[tuple[str, str]]]:
    usual = pool.pod if pool else Resources(pods=1)
    problems = []
    cpu, memory = usual.cpu_millicores, usual.memory_bytes
    try:
        cpu = cpu if asked.cpu is None else cpu_millicores(asked.cpu)
    except InvalidQuantity as error:
        problems.append(("pod.cpu", str(error)))
    try:
        memory = memory if asked.memory is None else whole_units(asked.memory)
    except InvalidQuantity as error:
        problems.append(("pod.memory", str(error)))
    pod = Resources(
        cpu_millicores=cpu,
        memory_bytes=memory,
        ephemeral_storage_bytes=usual.ephemeral_storage_bytes,
        pods=1,
        gpus=usual.gpus if asked.gpu is None else asked.gpu,
        volumes=usual.volumes,
    )
    return pod, problems


def end(
    cancellation: Cancellation, origin: Origin, *, cluster: Cluster, stored: Iterable[Reservation]
) -> Admitted | Repeated | Refused:
    """Decides on one cancellation."""
    portal = portal_of(origin, cluster)
    if portal is None:
        return _unlisted(origin, cluster)
    if problems := _addressed_elsewhere(cancellation.region, cancellation.cluster, cluster):
        return Refused(tuple(problems))
    earlier = next((r for r in stored if r.reference == cancellation.reference), None)
    if earlier is not None and earlier.portal != portal.name:
        return _used_by_another(cancellation.reference)
    ended = cancel(earlier, cancellation.reference, portal.name, origin.sent_at)
    return Admitted(ended, replaces=earlier) if ended else Repeated()


def _beyond_caps(wanted: Reservation, portal: Portal, stored: tuple[Reservation, ...], now: float) -> Refused | None:
    problems = []
    promised = promised_pods(stored, portal.name, now, besides=wanted.reference)
    if promised + wanted.pods > portal.max_pods:
        problems.append(
            ("pods", f"is {wanted.pods}; portal {portal.name} may reserve {portal.max_pods}, {promised} are reserved")
        )
    hours = (wanted.ends_at - wanted.starts_at) / 3600
    if hours > portal.max_reserved_hours:
        problems.append(
            ("ends_at", f"makes {hours:.2f} hours; portal {portal.name} may reserve {portal.max_reserved_hours:g}")
        )
    return Refused(tuple(problems)) if problems else None
