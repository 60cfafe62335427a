"""Options that commands share: which cluster, with whose credentials, and how to answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

ONLY_CLOUD = "*"

File = Annotated[Path | None, typer.Option("--file", help="The operator's file; else firstbell.yaml.")]
ClusterName = Annotated[str | None, typer.Option("--cluster", help="Cluster of that file; else its only one.")]
Local = Annotated[
    str | None,
    typer.Option("--local", metavar="[NAME]", help="A local cloud instead of AWS; without a name, the only one."),
]
Profile = Annotated[str | None, typer.Option("--profile", help="AWS profile; else what your environment says.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]

Pods = Annotated[int, typer.Option("--pods", help="How many pods come.")]
PoolName = Annotated[str | None, typer.Option("--pool", help="The pool; else the cluster's default pool.")]
Reference = Annotated[str | None, typer.Option("--reference", help="Name of the class; else one is made up.")]
StartsAt = Annotated[str | None, typer.Option("--starts-at", help="RFC 3339 with an offset; else now.")]
EndsAt = Annotated[str | None, typer.Option("--ends-at", help="RFC 3339 with an offset.")]
HoldMinutes = Annotated[int | None, typer.Option("--hold-minutes", help="Instead of --ends-at; else 60.")]
Cpu = Annotated[str | None, typer.Option("--cpu", help="CPU of one pod, such as 500m; else the pool's.")]
Memory = Annotated[str | None, typer.Option("--memory", help="Memory of one pod, such as 2Gi; else the pool's.")]
Gpu = Annotated[int | None, typer.Option("--gpu", help="GPUs of one pod; else the pool's.")]
Revision = Annotated[int | None, typer.Option("--revision", help="A higher one replaces what is stored.")]
Source = Annotated[str | None, typer.Option("--source", help="Source of the event; else the file's only portal's.")]
Wait = Annotated[bool, typer.Option("--wait", help="Follow it until there is an answer.")]
WaitSeconds = Annotated[float, typer.Option("--timeout-seconds", min=1, help="How long --wait follows it.")]


@dataclass(frozen=True, slots=True)
class Target:
    """Which deployment a command speaks to."""

    file: Path | None = None
    cluster: str | None = None
    local: str | None = None
    profile: str | None = None


class Command(TyperCommand):
    """Lets `--local` stand without a name, which Typer has no way to say."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = []
        for here, following in zip(args, [*args, "-"][1:], strict=True):
            given.append(f"{here}={ONLY_CLOUD}" if here == "--local" and following.startswith("-") else here)
        return super().parse_args(ctx, given)
