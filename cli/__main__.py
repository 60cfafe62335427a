"""`firstbell`, the operator's command line: `python -m cli`."""

from __future__ import annotations

import typer

from cli import catalogue, density

app = typer.Typer(
    name="firstbell",
    help="Room for pods before they come: what an operator asks and tells Firstbell.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.command("density")(density.density_command)
app.add_typer(catalogue.app, name="catalogue")


if __name__ == "__main__":
    app(prog_name="firstbell")
