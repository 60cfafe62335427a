"""`firstbell pause` and `firstbell resume`: the brake that needs no deployment."""

from __future__ import annotations

import typer

from cli import options
from cli.answers import answer, reported
from cli.connection import connected


def pause_command(
    ctx: typer.Context,
    file: options.File = None,
    cluster: options.ClusterName = None,
    local: options.Local = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Have every function plan and report, and write nothing, within a minute. Signals are still stored."""
    with reported():
        connection = connected(ctx, options.Target(file, cluster, local, profile))
        caller = connection.sender.caller().arn
        connection.ledger.pause(caller, connection.clock())
        words = [f"{connection.settings.name} is paused, by {caller}; `firstbell resume` ends it"]
        answer({"cluster": connection.settings.name, "paused": True, "by": caller}, words, as_json=as_json)


def resume_command(
    ctx: typer.Context,
    file: options.File = None,
    cluster: options.ClusterName = None,
    local: options.Local = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Let every function act again. What was signalled meanwhile is looked after within a minute."""
    with reported():
        connection = connected(ctx, options.Target(file, cluster, local, profile))
        connection.ledger.resume()
        words = [f"{connection.settings.name} is not paused"]
        answer({"cluster": connection.settings.name, "paused": False}, words, as_json=as_json)
