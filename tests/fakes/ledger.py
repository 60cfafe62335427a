"""The ledger in memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from firstbell.capacity.pool_state import PoolState, state_from_document
from firstbell.cloud.ledger import LEASE_SECONDS, Lease, Ledger, LedgerView
from firstbell.errors import Conflict
from tests.fakes.faults import Call, Faults

if TYPE_CHECKING:
    from collections.abc import Iterable

    from firstbell.capacity.reservations import Reservation


@dataclass(slots=True)
class _PoolItem:
    state: PoolState = field(default_factory=PoolState)
    dirty: int = 0
    holder: str = ""
    until: float = 0.0


class FakeLedger(Ledger):
    """Same conditions, same conflicts; tests/functional/cloud/test_ledger.py runs one suite against both."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.faults = faults or Faults()
        self.calls: list[Call] = []
        self.reservations: dict[str, Reservation] = {}
        self.pools: dict[str, _PoolItem] = {}
        self.portal_versions: dict[str, int] = {}
        self.paused = False

    def read(self) -> LedgerView:
        with self._called("ledger.read"):
            return LedgerView(
                reservations=tuple(self.reservations.values()),
                pools={name: item.state for name, item in self.pools.items()},
                dirty={name: item.dirty for name, item in self.pools.items()},
                portal_versions=dict(self.portal_versions),
                paused=self.paused,
            )

    def store(self, reservation: Reservation, replaces: Reservation | None, view: LedgerView) -> Reservation:
        with self._called("ledger.store", reservation.reference):
            seen = view.portal_versions.get(reservation.portal, 0)
            self._check_version(reservation.reference, replaces.version if replaces else 0)
            if self.portal_versions.get(reservation.portal, 0) != seen:
                raise Conflict("the portal stored something since")
            stored = replace(reservation, version=replaces.version + 1 if replaces else 1)
            self.reservations[reservation.reference] = stored
            self.portal_versions[reservation.portal] = seen + 1
            return stored

    def lease(self, pool: str, holder: str, now: float, *, changed: bool) -> Lease | None:
        with self._called("ledger.lease", pool):
            item = self.pools.setdefault(pool, _PoolItem())
            item.dirty += changed
            if item.holder not in ("", holder) and item.until >= now:
                return None
            item.holder, item.until = holder, now + LEASE_SECONDS
            return Lease(pool=pool, holder=holder, dirty=item.dirty, until=item.until)

    def renew(self, lease: Lease, now: float) -> Lease | None:
        return self.lease(lease.pool, lease.holder, now, changed=False)

    def finish(self, lease: Lease, state: PoolState, changed: Iterable[Reservation]) -> bool:
        with self._called("ledger.finish", lease.pool):
            item = self.pools[lease.pool]
            changed = tuple(changed)
            if (item.holder, item.dirty) != (lease.holder, lease.dirty):
                return False
            try:
                for reservation in changed:
                    self._check_version(reservation.reference, reservation.version)
            except Conflict:
                return False
            for reservation in changed:
                self.reservations[reservation.reference] = replace(reservation, version=reservation.version + 1)
            item.state, item.holder, item.until = state_from_document(state.as_document()), "", 0.0
            return True

    def abandon(self, lease: Lease) -> None:
        with self._called("ledger.abandon", lease.pool):
            item = self.pools[lease.pool]
            if item.holder == lease.holder:
                item.holder, item.until = "", 0.0

    def pause(self, by: str, now: float) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def _check_version(self, reference: str, version: int) -> None:
        stored = self.reservations.get(reference)
        if (stored.version if stored else 0) != version:
            raise Conflict(f"{reference} changed since it was read")

    def _called(self, name: str, *args: Any) -> Any:
        return self.faults.around(self.calls, name, *args)
