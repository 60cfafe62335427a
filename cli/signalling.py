"""`firstbell signal` and `firstbell cancel`: an operator speaks as a portal does."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import typer

from cli import options
from cli.answers import Exit, answer, reported, wrong_use
from cli.connection import connected
from cli.demand import Asked, decide, portal_of, problems_in_words
from cli.following import CODES, follow_cancellation, follow_signal
from firstbell.prescale.plan import Refused, Repeated
from firstbell.prescale.service import CANCELLATION, SIGNAL

if TYPE_CHECKING:
    from cli.connection import Connection
    from cli.following import Followed
    from firstbell.capacity.reservations import Reservation


def signal_command(
    ctx: typer.Context,
    pods: options.Pods,
    pool: options.PoolName = None,
    reference: options.Reference = None,
    starts_at: options.StartsAt = None,
    ends_at: options.EndsAt = None,
    hold_minutes: options.HoldMinutes = None,
    cpu: options.Cpu = None,
    memory: options.Memory = None,
    gpu: options.Gpu = None,
    revision: options.Revision = None,
    source: options.Source = None,
    wait: options.Wait = False,
    timeout_seconds: options.WaitSeconds = 900,
    file: options.File = None,
    cluster: options.ClusterName = None,
    local: options.Local = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Say that pods are coming. Ends with 3 where the signal is refused; with --wait, 0 at Capacity Ready, 4 at
    Capacity Short, 5 without an answer in time."""
    with reported():
        connection = connected(ctx, options.Target(file, cluster, local, profile))
        asked = Asked(
            pods=pods,
            reference=reference or f"cli-{uuid.uuid4().hex[:12]}",
            pool=pool,
            starts_at=starts_at,
            ends_at=ends_at,
            hold_minutes=hold_minutes,
            cpu=cpu,
            memory=memory,
            gpu=gpu,
            revision=revision,
        )
        _signal(connection, asked, source, wait_seconds=timeout_seconds if wait else None, as_json=as_json)


def cancel_command(
    ctx: typer.Context,
    reference: str = typer.Argument(help="The reservation's reference, as `firstbell status` shows it."),
    wait: options.Wait = False,
    timeout_seconds: options.WaitSeconds = 60,
    file: options.File = None,
    cluster: options.ClusterName = None,
    local: options.Local = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Say that a class does not come, or has gone. Its nodes stay until they are idle or somebody else ends them."""
    with reported():
        connection = connected(ctx, options.Target(file, cluster, local, profile))
        wait_seconds = timeout_seconds if wait else None
        stored = connection.ledger.read().reservation(reference)
        if stored is None:
            raise wrong_use(
                f"{reference!r} is no reservation; allowed: {_open_references(connection) or 'none is open'}"
            )
        if not stored.open_at(connection.clock()):
            why = "cancelled" if stored.cancelled_at else "over"
            return answer(
                {"reference": reference, "sent": False, "why": why}, [f"{reference} is {why} already"], as_json=as_json
            )
        _cancel(connection, stored, wait_seconds=wait_seconds, as_json=as_json)
    return None


def _signal(
    connection: Connection, asked: Asked, source: str | None, *, wait_seconds: float | None, as_json: bool
) -> None:
    portal = portal_of(connection.settings, source)
    detail = asked.detail(connection.settings)
    account = connection.sender.caller().account
    decision = decide(connection, detail, portal.source, account, connection.ledger.read())
    document: dict[str, Any] = {"reference": asked.reference, "source": portal.source, "detail": detail, "sent": False}
    if isinstance(decision, Refused):
        problems = [{"field": field, "problem": problem} for field, problem in decision.problems]
        words = ["not sent; it would be answered with Signal Rejected:"]
        answer(
            document | {"problems": problems},
            [*words, *(f"  {line}" for line in problems_in_words(decision))],
            as_json=as_json,
        )
        raise typer.Exit(Exit.REFUSED)
    event_id = connection.sender.put(portal.source, SIGNAL, detail)
    words = [f"sent: {asked.pods} pods under the reference {asked.reference} (event {event_id})"]
    if repeated := isinstance(decision, Repeated):
        words.append("nothing newer than what is stored under it; a higher --revision would replace that")
    document |= {"sent": True, "event_id": event_id, "repeated": repeated}
    if wait_seconds is None:
        return answer(document, words, as_json=as_json)
    _begin(words, as_json=as_json)
    replaced = None if isinstance(decision, Repeated) else decision.replaces
    followed = follow_signal(connection, asked.reference, replaced, wait_seconds)
    return _followed(followed, document, as_json=as_json)


def _cancel(connection: Connection, stored: Reservation, *, wait_seconds: float | None, as_json: bool) -> None:
    portal = next((p for p in connection.settings.portals if p.name == stored.portal), None)
    if portal is None:
        raise wrong_use(f"{stored.reference} is of portal {stored.portal}, which the operator's file does not list")
    detail = {"reference": stored.reference, "region": connection.settings.region}
    event_id = connection.sender.put(portal.source, CANCELLATION, detail)
    document = {"reference": stored.reference, "source": portal.source, "sent": True, "event_id": event_id}
    words = [f"sent: {stored.reference} does not come (event {event_id})"]
    if wait_seconds is None:
        return answer(document, words, as_json=as_json)
    _begin(words, as_json=as_json)
    return _followed(follow_cancellation(connection, stored.reference, wait_seconds), document, as_json=as_json)


def _begin(words: list[str], *, as_json: bool) -> None:
    """What was sent is said before the wait; a JSON document is one, and comes at its end."""
    if not as_json:
        answer({}, words, as_json=False)


def _followed(followed: Followed, document: dict[str, Any], *, as_json: bool) -> None:
    document |= {"answer": followed.ending, "seconds": round(followed.seconds, 1)}
    answer(document, [followed.words()], as_json=as_json)
    raise typer.Exit(CODES[followed.ending])


def _open_references(connection: Connection) -> str:
    now = connection.clock()
    return ", ".join(sorted(r.reference for r in connection.ledger.read().reservations if r.open_at(now)))
