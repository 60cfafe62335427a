"""`firstbell plan`: what would happen for a signal now. Calls nothing that writes."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import typer

from cli import options
from cli.answers import Exit, answer, counted, moment, reported
from cli.connection import connected
from cli.demand import Asked, decide, portal_of, problems_in_words
from cli.observer import Observer
from firstbell.errors import RetryLater
from firstbell.outcomes import CapacityRequested, CapacityShort, SignalRejected, rfc3339
from firstbell.prescale.plan import Refused, Repeated

if TYPE_CHECKING:
    from cli.connection import Connection
    from cli.observer import Foresight
    from firstbell.outcomes import Outcome


def plan_command(
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
    file: options.File = None,
    cluster: options.ClusterName = None,
    local: options.Local = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """What would happen for this signal, as the pool stands now. Writes nothing. Ends with 3 where the signal would be
    refused and with 4 where pods would be short."""
    with reported():
        connection = connected(ctx, options.Target(file, cluster, local, profile))
        asked = Asked(
            pods=pods,
            reference=reference or f"plan-{uuid.uuid4().hex[:12]}",
            pool=pool,
            starts_at=starts_at,
            ends_at=ends_at,
            hold_minutes=hold_minutes,
            cpu=cpu,
            memory=memory,
            gpu=gpu,
            revision=revision,
        )
        _plan(connection, asked, source, as_json=as_json)


def _plan(connection: Connection, asked: Asked, source: str | None, *, as_json: bool) -> None:
    portal = portal_of(connection.settings, source)
    view = connection.ledger.read()
    decision = decide(connection, asked.detail(connection.settings), portal.source, portal.account, view)
    if isinstance(decision, Refused):
        problems = [{"field": field, "problem": problem} for field, problem in decision.problems]
        words = ["Signal Rejected:", *(f"  {line}" for line in problems_in_words(decision))]
        answer({"decision": "refused", "reference": asked.reference, "problems": problems}, words, as_json=as_json)
        raise typer.Exit(Exit.REFUSED)
    repeated = isinstance(decision, Repeated)
    # What is repeated is what is stored under the same reference.
    reservation = view.reservation(asked.reference) if isinstance(decision, Repeated) else decision.reservation
    if reservation is None:
        raise RetryLater("the reservation went while it was planned for: plan again")
    now = connection.clock()
    served = connection.settings.pool(reservation.pool)
    lead_seconds = view.state(reservation.pool).lead_seconds(served.lead_minutes if served else None)
    at = max(now, reservation.starts_at - lead_seconds)
    observer = Observer(connection)
    foresight = observer.foresee(reservation, view, at)
    failure = str(observer.reading.failure or "")
    document = _document(foresight, at, repeated=repeated, unseen=failure)
    answer(document, _words(foresight, at, now, repeated=repeated, unseen=failure), as_json=as_json)
    if code := _code(foresight.outcomes):
        raise typer.Exit(code)


def _document(foresight: Foresight, at: float, *, repeated: bool, unseen: str) -> dict[str, Any]:
    situation = foresight.look.situation
    return {
        "decision": "repeated" if repeated else "admitted",
        "reference": foresight.reservation.reference,
        "pool": situation.pool,
        "mode": situation.mode,
        "asked_for_at": rfc3339(at),
        "starts_at": rfc3339(foresight.reservation.starts_at),
        "ends_at": rfc3339(foresight.reservation.ends_at),
        "desired_before": situation.plan.read,
        "desired_needed": situation.plan.needed,
        "desired_after": situation.plan.desired,
        "cluster_unseen": unseen,
        "fallback": {
            name: {
                "pods": dict(situation.lent[name]),
                "desired_before": look.situation.plan.read,
                "desired_after": look.situation.plan.desired,
            }
            for name, look in foresight.neighbours.items()
        },
        "outcomes": [{"detail_type": o.DETAIL_TYPE, **o.as_detail()} for o in foresight.outcomes],
    }


def _words(foresight: Foresight, at: float, now: float, *, repeated: bool, unseen: str) -> list[str]:
    situation, reservation = foresight.look.situation, foresight.reservation
    plan = situation.plan
    lines = []
    if repeated:
        lines.append("nothing newer than what is stored under this reference; a higher --revision would replace it")
    if at > now:
        lines.append(f"nothing before {moment(at, now)}; then, if the pool stood as it does now:")
    if unseen:
        lines.append(f"the cluster cannot be read, so existing nodes count as full: {unseen}")
    if plan.raises:
        lines.append(f"{situation.pool}: desired from {plan.read} to {plan.desired}{_spared(situation.mode)}")
    elif not any(isinstance(o, SignalRejected) for o in foresight.outcomes):
        lines.append(f"{situation.pool}: desired stays {plan.read}")
    for name, look in foresight.neighbours.items():
        theirs = look.situation.plan
        pods = sum(situation.lent[name].values())
        lines.append(f"{name}: takes {counted(pods, 'pod')}, desired from {theirs.read} to {theirs.desired}")
    lines += [_outcome_in_words(o) for o in foresight.outcomes]
    lines.append(f"held until {moment(reservation.ends_at, now)}")
    return lines


def _spared(mode: str) -> str:
    if mode == "paused":
        return " (not written: Firstbell is paused)"
    return " (not written: the pool is in mode observe)" if mode == "observe" else ""


def _outcome_in_words(outcome: Outcome) -> str:
    match outcome:
        case CapacityRequested():
            how = "estimated" if outcome.estimated else "as its nodes showed"
            return (
                f"Capacity Requested: {outcome.outstanding_pods} of {outcome.pods} pods to come, "
                f"{outcome.placed_pods} have room now, {outcome.density} fit on a new node ({how})"
            )
        case CapacityShort():
            return f"Capacity Short: {counted(outcome.pods_short, 'pod')}, {outcome.detail}. {outcome.remedy}"
        case SignalRejected():
            return "Signal Rejected: " + "; ".join(f"{p.field} {p.problem}" for p in outcome.problems)
        case _:
            return f"{outcome.DETAIL_TYPE} at once"


def _code(outcomes: tuple[Outcome, ...]) -> Exit:
    if any(isinstance(o, SignalRejected) for o in outcomes):
        return Exit.REFUSED
    if any(isinstance(o, CapacityShort) and o.pods_short for o in outcomes):
        return Exit.SHORT
    return Exit.DONE
