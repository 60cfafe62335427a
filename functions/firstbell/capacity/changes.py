"""Changes that AWS Health has scheduled for instances of ours, kept until it is time to drain them. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from firstbell.capacity.pools import Pool

REMEMBERED_SECONDS = 24 * 3600.0
"""How long after its start a change is remembered."""


@dataclass(frozen=True, slots=True)
class Change:
    """One scheduled change (an event ARN of AWS Health). Times are Unix seconds."""

    event_arn: str
    starts_at: float
    updated_at: float
    communication: str
    """The same on every page of one announcement."""
    instances: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Pool -> ids of its affected instances."""
    enqueued: Mapping[str, float] = field(default_factory=dict)
    """Pool -> the start for which its drains were put into the queue."""
    version: int = 0

    @property
    def forget_at(self) -> float:
        return self.starts_at + REMEMBERED_SECONDS


@dataclass(frozen=True, slots=True)
class DueChange:
    """A message to put into the interruption queue now; afterwards `Change.enqueued` is set for the pool."""

    change: Change
    pool: str
    body: str


def updated(stored: Change | None, news: Change) -> Change:
    """`stored` after an announcement: a newer one replaces it, a further page of the same adds to it, an older one is
    late and changes nothing."""
    if stored is None:
        return news
    if news.communication == stored.communication:
        pools = {*stored.instances, *news.instances}
        merged = {
            pool: sorted({*stored.instances.get(pool, ()), *news.instances.get(pool, ())}) for pool in sorted(pools)
        }
        settled = {pool: at for pool, at in stored.enqueued.items() if merged[pool] == stored.instances[pool]}
        return replace(stored, instances=merged, enqueued=settled)
    if news.updated_at < stored.updated_at:
        return stored
    return replace(news, enqueued=stored.enqueued, version=stored.version)


def due(changes: Iterable[Change], pools: Sequence[Pool], now: float) -> list[DueChange]:
    """What is to be drained now: each pool's instances from its `before_minutes` ahead of the start, once per start."""
    found = []
    for change in changes:
        for pool in pools:
            instance_ids = change.instances.get(pool.name, ())
            drain_at = change.starts_at - pool.interruption.before_minutes * 60
            if instance_ids and now >= drain_at and change.enqueued.get(pool.name) != change.starts_at:
                found.append(DueChange(change, pool.name, _body(change, pool.name, instance_ids, now)))
    return found


def enqueued(change: Change, pool: str) -> Change:
    return replace(change, enqueued={**change.enqueued, pool: change.starts_at})


def change_as_document(change: Change) -> dict[str, Any]:
    return asdict(change)


def change_from_document(document: Mapping[str, Any]) -> Change:
    return Change(**{name: document[name] for name in Change.__dataclass_fields__ if name in document})


def _body(change: Change, pool: str, instance_ids: Sequence[str], now: float) -> str:
    """Read by `firstbell.interruption.parsers.change_due`. Its id is that of this start, so that it counts once."""
    return json.dumps(
        {
            "version": "1",
            "id": f"{change.event_arn}#{pool}#{change.starts_at:.0f}",
            "source": "firstbell",
            "detail-type": "Scheduled Change Due",
            "time": _rfc3339(now),
            "detail": {"instance_ids": list(instance_ids), "starts_at": _rfc3339(change.starts_at)},
        }
    )


def _rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
