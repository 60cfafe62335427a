"""`firstbell status`: every reservation and every pool, and what each waits for. Writes nothing."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from cli import options
from cli.answers import answer, counted, moment, reported
from cli.connection import connected
from cli.observer import Observer
from cli.standing import pool_standing, reservation_standing
from firstbell.capacity.reservations import Phase
from firstbell.outcomes import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cli.connection import Connection
    from cli.standing import PoolStanding, ReservationStanding
    from firstbell.capacity.reservations import Reservation

_ORDER = {phase: number for number, phase in enumerate((Phase.LIVE, Phase.FUTURE, Phase.ENDED, Phase.CANCELLED))}


def status_command(
    ctx: typer.Context,
    file: options.File = None,
    cluster: options.ClusterName = None,
    local: options.Local = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Every reservation (live, to come, ended within a day) and every pool, and what each waits for."""
    with reported():
        _status(connected(ctx, options.Target(file, cluster, local, profile)), as_json=as_json)


def _status(connection: Connection, *, as_json: bool) -> None:
    now = connection.clock()
    view = connection.ledger.read()
    observer = Observer(connection)
    looks = {pool.name: observer.look(pool.name, view, now) for pool in connection.settings.pools}
    # DynamoDB deletes what has expired only days later.
    remembered = [r for r in view.reservations if r.forget_at > now]
    reservations = [reservation_standing(r, looks.get(r.pool), now) for r in sorted(remembered, key=_by_start)]
    reservations.sort(key=lambda r: _ORDER[Phase(r.phase)])
    pools = [pool_standing(pool, looks[pool.name], now) for pool in connection.settings.pools]
    failure = str(observer.reading.failure or "")
    document = {
        "cluster": connection.settings.name,
        "at": rfc3339(now),
        "paused": view.paused,
        "cluster_unseen": failure,
        "reservations": [asdict(r) for r in reservations],
        "pools": [asdict(p) for p in pools],
    }
    times = {r.reference: f"{moment(r.starts_at, now)} to {moment(r.ends_at, now)}" for r in remembered}
    head = [f"[bold]{connection.settings.name}[/bold] at {moment(now, now)}{', PAUSED' if view.paused else ''}"]
    if failure:
        head.append(f"the cluster cannot be read: {escape(failure)}")
    answer(
        document, [*head, *_reservation_lines(reservations, times), *_pool_lines(pools)], as_json=as_json, markup=True
    )


def _by_start(reservation: Reservation) -> tuple[float, str]:
    return reservation.starts_at, reservation.reference


def _reservation_lines(reservations: Sequence[ReservationStanding], times: dict[str, str]) -> Iterator[str]:
    yield ""
    yield "[bold]Reservations[/bold]" if reservations else "no reservations"
    for r in reservations:
        where = f" in {r.pool}" if r.pool else ""
        yield f"  [bold]{r.reference}[/bold]  {r.phase}, {counted(r.pods, 'pod')}{where}, {times[r.reference]}"
        yield f"      waits for {escape(r.waits_for)}"


def _pool_lines(pools: Sequence[PoolStanding]) -> Iterator[str]:
    yield ""
    yield "[bold]Pools[/bold]"
    for p in pools:
        mode = "" if p.mode == "act" else f" ({p.mode})"
        yield (
            f"  [bold]{p.pool}[/bold]{mode}  desired {p.desired} of at most {p.max_size}, "
            f"{_known(p.usable_nodes)} usable, {_known(p.starting_nodes)} starting, "
            f"{_known(p.headroom_pods)} places free, {p.outstanding_pods} pods to come, "
            f"{_known(p.pending_pods)} pending"
        )
        if p.held_nodes:
            yield f"      holds {counted(p.held_nodes, 'node')} against scale-down"
        for name, pods in p.lent_pods.items():
            yield f"      lends {counted(pods, 'pod')} to {name}"
        yield f"      waits for {escape(p.waits_for)}"


def _known(number: int | None) -> str:
    return "?" if number is None else str(number)
