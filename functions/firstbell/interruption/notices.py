"""What a message of the interruption queue says, once parsed. Times are Unix seconds in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from firstbell.errors import FirstbellError


class Kind(StrEnum):
    """Why an instance goes. The value is also the taint's value, a metric dimension and the key of policies."""

    SPOT = "spot"
    REBALANCE = "rebalance"
    STATE_CHANGE = "state-change"
    LIFECYCLE = "lifecycle"
    SCHEDULED_CHANGE = "scheduled-change"
    CAPACITY_RESERVATION = "capacity-reservation"
    CAPACITY_BLOCK = "capacity-block"


@dataclass(frozen=True, slots=True)
class HookCall:
    """A terminating lifecycle action that waits for an answer."""

    group: str
    hook: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class ScheduledChange:
    """Where a change stands that AWS Health has announced."""

    event_arn: str
    starts_at: float
    updated_at: float
    communication: str
    """The same on every page of one announcement, without the page number."""
    ended: bool = False
    """Health closed or withdrew it: nothing will happen any more."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """Instances go, or may go."""

    kind: Kind
    instance_ids: tuple[str, ...]
    """Empty only where AWS names a reservation instead, or a scheduled change that affects nothing any more."""
    event_id: str
    event_time: float
    deadline: float | None = None
    """When the instance loses power; None where the event does not say."""
    hook: HookCall | None = None
    state: str = ""
    """EC2's state, of a state change only."""
    reservation_id: str = ""
    change: ScheduledChange | None = None
    due: bool = False
    """A stored scheduled change whose time to drain has come."""
    drill: bool = False


@dataclass(frozen=True, slots=True)
class Continuation:
    """Our own message: the next pass of a drain."""

    instance_id: str
    number: int
    """Number of the pass that it asks for; the first, which a notice starts, is 1."""
    kind: Kind
    """With `deadline`, what the drain goes on with if the ledger has lost it."""
    deadline: float


@dataclass(frozen=True, slots=True)
class Ignored:
    """A message that asks nothing of us. Acknowledged and counted by its reason."""

    reason: str


Notice = Interruption | Continuation | Ignored


@dataclass(frozen=True, slots=True)
class Message:
    """One message as SQS delivered it."""

    id: str
    receipt: str
    body: str
    receives: int = 1
    """How often it was delivered, this time included."""


class Unparseable(FirstbellError):
    """A message whose body is not what its sender documents. Acknowledged, counted, and copied to the DLQ."""
