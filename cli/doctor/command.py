"""The command: examine, list, and end with 1 where something is wrong."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from cli import options
from cli.answers import Exit, answer, counted, reported
from cli.connection import connected
from cli.doctor.access import examine_access
from cli.doctor.asking import Aws
from cli.doctor.delivery import examine_delivery
from cli.doctor.findings import Examination, Finding
from cli.doctor.groups import examine_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.connection import Connection

_WORST_FIRST = ("error", "warning", "unchecked")


def doctor_command(
    ctx: typer.Context,
    file: options.File = None,
    cluster: options.ClusterName = None,
    local: options.Local = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Look for what stands in Firstbell's way, and say what to do about it. Ends with 1 where something is wrong."""
    with reported():
        connection = connected(ctx, options.Target(file, cluster, local, profile))
        examination = examine(connection)
        findings = sorted(examination.gathered(), key=lambda f: (_WORST_FIRST.index(f.severity), f.check, f.subject))
        wrong = any(finding.wrong for finding in findings)
        document = {
            "cluster": connection.settings.name,
            "wrong": wrong,
            "examined": examination.examined,
            "findings": [asdict(finding) for finding in findings],
        }
        answer(document, _words(findings, examination.examined), as_json=as_json)
        if wrong:
            raise typer.Exit(Exit.FAILED)


def examine(connection: Connection) -> Examination:
    settings = connection.settings
    examination = Examination()
    aws = Aws(settings.region)
    functions = examine_delivery(examination, aws, settings.name, connection.clock())
    examine_access(examination, aws, settings.name, functions, connection.api)
    examine_groups(examination, aws, settings.name, settings.pools, connection.group_name)
    view = examination.read("ledger", settings.name, connection.ledger.read)
    if view is not None:
        paused = Finding("warning", "pause", settings.name, "Firstbell is paused", "firstbell resume")
        examination.add([paused] if view.paused else [])
    return examination


def _words(findings: list[Finding], examined: int) -> Iterator[str]:
    for finding in findings:
        yield f"{finding.severity}: {finding.check} {finding.subject}: {finding.problem}"
        yield f"    {finding.remedy}"
    wrong = sum(finding.wrong for finding in findings)
    yield f"{counted(examined, 'thing')} examined, {wrong or 'nothing'} wrong"
