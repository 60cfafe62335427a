"""Shows the board: live in a terminal, as plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from demo.board import Board, Line, PoolBoard

REFRESHES_PER_SECOND = 4
LINES_SHOWN = 12
STYLES = {"portal": "cyan", "firstbell": "bold green", "reactive": "yellow", "morning": "bold"}


class View:
    """Open while the morning runs. `plain` prints each line as it is said and nothing twice."""

    def __init__(self, board: Board, console: Console) -> None:
        self._board = board
        self._console = console
        self._live = None
        if console.is_terminal:
            self._live = Live(get_renderable=self._render, console=console, refresh_per_second=REFRESHES_PER_SECOND)
        else:
            board.heard = self._print

    def __enter__(self) -> Self:
        if self._live:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.__exit__(kind, error, trace)

    def _print(self, line: Line) -> None:
        moment = time.strftime("%H:%M:%S", time.localtime(line.at))
        self._console.print(f"{moment}  {line.who:<10} {line.text}", highlight=False, markup=False, soft_wrap=True)

    def _render(self) -> Group:
        with self._board.lock:
            lines = list(self._board.lines)[-LINES_SHOWN:]
            stages = dict(self._board.stages)
        pools = Table.grid(expand=True, padding=(0, 1))
        for _ in self._board.pools.values():
            pools.add_column(ratio=1)
        pools.add_row(*(pool_panel(pool) for pool in self._board.pools.values()))
        return Group(
            Text(f" Firstbell, a school morning: {self._board.clock}{since(stages)} ", style="bold reverse"),
            stages_line(stages),
            pools,
            Panel(Group(*map(spoken, lines)), title="what was said", title_align="left", height=LINES_SHOWN + 2),
        )


def since(stages: dict[str, float]) -> str:
    return f" ({time.time() - stages['signal']:.0f} s since the signal)" if "signal" in stages else ""


def stages_line(stages: dict[str, float]) -> Text:
    """Every stage reached, with the seconds since the first one."""
    first = min(stages.values(), default=0.0)
    return Text(" " + "  >  ".join(f"{name} +{at - first:.0f} s" for name, at in stages.items()), style="dim")


def pool_panel(pool: PoolBoard) -> Panel:
    ready = len(pool.nodes & set(pool.ready_at))
    facts = Table.grid(padding=(0, 2), expand=True)
    facts.add_column(width=8)
    facts.add_column(width=28)
    facts.add_column(ratio=1)
    facts.add_row("nodes", f"{ready} Ready of {pool.desired} asked for", bar(ready, pool.desired))
    facts.add_row(
        "pods", f"{len(pool.running)} running of {len(pool.pods)} come", bar(len(pool.running), len(pool.pods))
    )
    waiting = Text(f"{pool.waiting} without a node", style="bold red" if pool.waiting else "dim")
    facts.add_row("waiting", waiting, "")
    return Panel(facts, title=f"{pool.title}: {pool.name}", title_align="left")


def bar(part: int, whole: int) -> ProgressBar:
    return ProgressBar(total=max(1, whole), completed=part)


def spoken(line: Line) -> Text:
    moment = time.strftime("%H:%M:%S", time.localtime(line.at))
    return Text.assemble(
        (f"{moment}  ", "dim"),
        (f"{line.who:<10} ", STYLES.get(line.who, "")),
        line.text,
        no_wrap=True,
        overflow="ellipsis",
    )
