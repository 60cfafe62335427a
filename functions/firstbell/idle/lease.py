"""The pool's lease through a visit, and whether anybody asked for capacity meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.errors import RetryLater

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstbell.capacity.pool_state import PoolState
    from firstbell.cloud.ledger import Lease, Ledger

TRIES = 10
PAUSE_SECONDS = 3.0
"""Tick and prescale hold a lease for seconds; idle is in no hurry, and an evaluation missed is five minutes lost."""
SAFE_SECONDS = 15.0
"""With less than this left, the lease is renewed before the next write."""


def take_lease(
    ledger: Ledger, pool: str, holder: str, clock: Callable[[], float], sleep: Callable[[float], None]
) -> HeldLease | None:
    for attempt in range(TRIES):
        if attempt:
            sleep(PAUSE_SECONDS)
        if lease := ledger.lease(pool, holder, clock(), changed=False):
            return HeldLease(ledger, lease, clock)
    return None


@dataclass(slots=True)
class HeldLease:
    """Whoever wants capacity while we hold the lease marks the pool and leaves it to us: `demand_changed` then."""

    ledger: Ledger
    lease: Lease | None
    clock: Callable[[], float]
    demand_changed: bool = False

    def still_ours(self, *, renewed: bool = False) -> bool:
        """Whether we may go on writing. `renewed` asks the ledger whatever time is left."""
        if self.lease is None or self.demand_changed:
            return False
        if renewed or self.lease.until - self.clock() < SAFE_SECONDS:
            self._renew()
        return self.lease is not None and not self.demand_changed

    def lasts(self) -> bool:
        """Whether the lease has not lapsed."""
        return self.lease is not None and self.clock() < self.lease.until

    def remember(self, state: PoolState) -> bool:
        """Saves the state and goes on holding the lease; False where demand changed or somebody else was quicker."""
        if self.lease is None:
            return False
        held = self.lease
        if not self.ledger.finish(held, state, ()):
            self._renew()
            return False
        self._took(held, self.ledger.lease(held.pool, held.holder, self.clock(), changed=False))
        return self.lease is not None and not self.demand_changed

    def finish(self, state: PoolState) -> None:
        """Saves the state, whatever changed meanwhile, and gives the lease back. Raises RetryLater if it was lost."""
        for _ in range(TRIES):
            if self.lease is None:
                break
            if self.ledger.finish(self.lease, state, ()):
                self.lease = None
                return
            self._renew()
        raise RetryLater("the pool's lease was lost while its idle nodes were looked at")

    def abandon(self) -> None:
        if self.lease is not None:
            self.ledger.abandon(self.lease)
            self.lease = None

    def _renew(self) -> None:
        if (held := self.lease) is not None:
            self._took(held, self.ledger.renew(held, self.clock()))

    def _took(self, before: Lease, now: Lease | None) -> None:
        self.lease = now
        self.demand_changed = self.demand_changed or (now is not None and now.dirty != before.dirty)
