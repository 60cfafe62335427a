"""One pass over one instance, as it is being worked on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firstbell.interruption.notices import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor

    from firstbell.capacity.cluster_view import Node
    from firstbell.capacity.drains import Drain
    from firstbell.capacity.groups import Group
    from firstbell.capacity.pools import Pool
    from firstbell.interruption.notices import Message
    from firstbell.interruption.plan import Ending, PodStep


@dataclass(slots=True)
class Pass:
    drain: Drain
    message: Message
    """It holds the claim."""
    pool: Pool
    group: Group | None
    """None where the pool's group is gone."""
    node: Node | None
    """None where no node has joined, or it is gone."""
    steps: tuple[PodStep, ...] = ()
    blocked: int = 0
    """Pods that a budget refused in this pass."""
    problems: dict[str, str] = field(default_factory=dict)
    """`namespace/name` -> why its eviction was refused, other than by a budget."""
    next_at: float = 0.0
    ending: Ending | None = None
    said: bool = False
    """Whether this pass has an outcome to publish."""
    error: Exception | None = None
    """What kept the pass from being done; its message comes back."""

    counts: list[tuple[str, float, dict[str, str]]] = field(default_factory=list)
    """Metrics of this pass. Threads only note them: two that print at once would spoil each other's line."""

    def count(self, name: str, value: float = 1, **dimensions: str) -> None:
        self.counts.append((name, value, dimensions))

    @property
    def asks_replacement(self) -> bool:
        """Whether it has yet to be decided what takes the instance's place: at a real Spot notice only."""
        drain = self.drain
        return Kind.SPOT in drain.kinds and not drain.drill and not drain.replacement and self.node is not None

    @property
    def going_on(self) -> bool:
        return self.error is None and self.ending is None


def each(
    threads: Executor, passes: Iterable[Pass], work: Callable[[Pass], None], failed: Callable[[Pass], None]
) -> None:
    """Does `work` on every pass at once. One that fails keeps its error and does not keep the others from theirs;
    `failed` is told of it inside the handler, where its traceback can be logged."""

    def guarded(one: Pass) -> None:
        try:
            work(one)
        except Exception as error:  # noqa: BLE001  # one instance's trouble, of any kind, is not its neighbours'
            one.error = error
            failed(one)

    for _ in threads.map(guarded, passes):
        pass
