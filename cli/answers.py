"""How a command answers: exit codes, one JSON document or words, and errors in one line."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from firstbell.errors import AccessDenied, ClusterUnreachable, ConfigurationError, FirstbellError, RetryLater
from infra.operator_file import WrongFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Exit(IntEnum):
    """Exit codes of every command; docs/command-line.md lists them."""

    DONE = 0
    FAILED = 1
    """Something is wrong: AWS or Kubernetes did not do it, or `doctor` found something."""
    WRONG_USE = 2
    REFUSED = 3
    """The signal is, or would be, answered with Signal Rejected."""
    SHORT = 4
    """There is, or would be, room for only some of the pods."""
    UNDECIDED = 5
    """`--wait` ended before there was an answer."""


def answer(document: Mapping[str, Any], words: Iterable[str], *, as_json: bool, markup: bool = False) -> None:
    """One JSON document on standard output, or lines, with rich's `markup` where they are written for it."""
    if as_json:
        print(json.dumps(document))
        return
    console = Console(highlight=False, soft_wrap=True, markup=markup)
    for line in words:
        console.print(line)


def progress(words: str) -> None:
    """What happens meanwhile: for a person, so never on standard output."""
    print(words, file=sys.stderr, flush=True)


@contextmanager
def reported() -> Iterator[None]:
    """Errors leave as `error: ...` on standard error and an exit code."""
    try:
        yield
    except (WrongFile, ConfigurationError) as error:
        _stop(str(error), Exit.WRONG_USE)
    except FirstbellError as error:
        _stop(f"{error}{_advice(error)}", Exit.FAILED)


def wrong_use(problem: str) -> ConfigurationError:
    return ConfigurationError(problem)


def moment(at: float, now: float) -> str:
    """A time of day on the operator's own clock, with the date where it is not today's."""
    then, today = (datetime.fromtimestamp(seconds, UTC).astimezone() for seconds in (at, now))
    return then.strftime("%H:%M:%S" if then.date() == today.date() else "%Y-%m-%d %H:%M")


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _advice(error: FirstbellError) -> str:
    match error:
        case ClusterUnreachable():
            return "\nIs the cluster's API endpoint reachable from this machine?"
        case AccessDenied():
            return "\nYour own credentials lack this right; AWS_PROFILE or --profile chooses others."
        case RetryLater():
            return "\nTry again."
        case _:
            return ""


def _stop(problem: str, code: Exit) -> None:
    print(f"error: {problem}", file=sys.stderr)
    raise typer.Exit(code)
