"""Faults that a test seeds into any fake: an error before, or after, the effect of the nth call."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY = "*"


class Crash(BaseException):
    """What a killed process looks like to the code under test: nothing may catch it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call that a fake received, faulty ones included."""

    name: str
    args: tuple[Any, ...]


@dataclass(slots=True)
class _Seed:
    call: str
    error: BaseException
    skip: int
    times: int
    after_effect: bool


@dataclass(slots=True)
class Faults:
    """Shared by as many fakes as a test likes; calls are counted over all of them, in order."""

    calls: list[Call] = field(default_factory=list)
    """Every call of every fake that shares this."""
    raised: list[str] = field(default_factory=list)
    """Names of the calls that a seeded fault has hit."""
    _seeds: list[_Seed] = field(default_factory=list)

    def fail(
        self, call: str, error: BaseException, *, nth: int = 1, times: int = 1, after_effect: bool = False
    ) -> None:
        """Raise `error` at the nth call of `call` (a method's name, or "*") from now on, and at the times - 1 that
        follow. With `after_effect` the call has its effect and only its answer is lost."""
        self._seeds.append(_Seed(call, error, nth - 1, times, after_effect))

    def clear(self) -> None:
        """Forget the seeds that have not been hit."""
        self._seeds.clear()

    @contextmanager
    def around(self, own: list[Call], name: str, *args: Any) -> Iterator[None]:
        """Around one fake call's effect: records it, and raises what was seeded for it."""
        self.calls.append(Call(name, args))
        own.append(self.calls[-1])
        due = self._due(name)
        if due is not None and not due.after_effect:
            raise due.error
        yield
        if due is not None:
            raise due.error

    def _due(self, name: str) -> _Seed | None:
        """The first seed that this call hits; every seed for the call counts it."""
        hit: _Seed | None = None
        for seed in self._seeds:
            if seed.call not in (ANY, name) or seed.times == 0:
                continue
            if seed.skip:
                seed.skip -= 1
            elif hit is None:
                seed.times -= 1
                hit = seed
        if hit is not None:
            self.raised.append(name)
        return hit
