"""`firstbell`, the operator's command line: `python -m cli`."""

from __future__ import annotations

import typer

from cli import brakes, catalogue, density, plan, signalling, status
from cli.doctor.command import doctor_command
from cli.options import Command

app = typer.Typer(
    name="firstbell",
    help="Room for pods before they come: what an operator asks and tells Firstbell.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.command("signal", cls=Command)(signalling.signal_command)
app.command("cancel", cls=Command)(signalling.cancel_command)
app.command("status", cls=Command)(status.status_command)
app.command("plan", cls=Command)(plan.plan_command)
app.command("pause", cls=Command)(brakes.pause_command)
app.command("resume", cls=Command)(brakes.resume_command)
app.command("doctor", cls=Command)(doctor_command)
app.command("density")(density.density_command)
app.add_typer(catalogue.app, name="catalogue")


if __name__ == "__main__":
    app(prog_name="firstbell")
