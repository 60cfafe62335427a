"""The catalogue of instance types that `--offline` reads: what ec2:DescribeInstanceTypes says, without asking it."""

from __future__ import annotations

import json
from dataclasses import astuple, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firstbell.capacity.instance_types import InstanceTypeFacts, facts_from_description
from firstbell.cloud.refusals import translated
from firstbell.cloud.session import Clients
from firstbell.errors import ConfigurationError, FirstbellError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

CATALOGUE = Path(__file__).parent / "instance_types.json"
FIELDS = [field.name for field in fields(InstanceTypeFacts)]

app = typer.Typer(help="The instance types that `density --offline` knows.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `refresh` a command of its own: Typer would fold a lone one into the group."""


@app.command()
def refresh(
    region: Annotated[
        list[str] | None, typer.Option(help="Region to ask; repeat for types that only some regions have.")
    ] = None,
    note: Annotated[str, typer.Option(help="Where the answer came from, if not from EC2 itself.")] = "",
    file: Annotated[Path, typer.Option(help="The catalogue to write.")] = CATALOGUE,
) -> None:
    """Ask EC2 for every instance type and write the catalogue anew."""
    known: dict[str, InstanceTypeFacts] = {}
    asked: list[str] = []
    try:
        for clients in [Clients(name) for name in region] if region else [Clients()]:
            known |= {facts.name: facts for facts in described(clients)}
            asked.append(clients.ec2.meta.region_name)
    except FirstbellError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
    provenance = {"source": "ec2:DescribeInstanceTypes", "regions": asked, "read_at": f"{datetime.now(UTC):%Y-%m-%d}"}
    write_catalogue(file, known.values(), provenance | ({"note": note} if note else {}))
    typer.echo(f"{len(known)} instance types written to {file}")


def described(clients: Clients) -> Iterator[InstanceTypeFacts]:
    """Every type of the region. Raises RetryLater, AccessDenied, FirstbellError."""
    with translated("ec2:DescribeInstanceTypes"):
        for page in clients.ec2.get_paginator("describe_instance_types").paginate():
            yield from map(facts_from_description, page["InstanceTypes"])


def write_catalogue(file: Path, known: Iterable[InstanceTypeFacts], provenance: Mapping[str, object]) -> None:
    """One line a type, in the order of FIELDS, so that a refresh shows in review what changed."""
    head = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(value)}" for key, value in {**provenance, "fields": FIELDS}.items()
    )
    rows = ",\n".join(
        json.dumps(astuple(facts), separators=(",", ":")) for facts in sorted(known, key=lambda f: f.name)
    )
    file.write_text(f'{{\n{head},\n"types": [\n{rows}\n]\n}}\n')


def read_catalogue(file: Path = CATALOGUE) -> dict[str, InstanceTypeFacts]:
    """Name -> facts. Raises ConfigurationError naming the file."""
    try:
        document = json.loads(file.read_text())
        rows = [dict(zip(document["fields"], row, strict=True)) for row in document["types"]]
        return {row["name"]: InstanceTypeFacts(**row) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{file}: this catalogue cannot be read ({error}); `firstbell catalogue refresh` writes it anew"
        ) from error
