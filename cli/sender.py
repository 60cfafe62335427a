"""Puts an operator's event on the bus, as a portal would."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firstbell.cloud.refusals import DENIED, Refused, translated
from firstbell.errors import AccessDenied

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firstbell.cloud.session import Clients


@dataclass(frozen=True, slots=True)
class Caller:
    account: str
    arn: str


class Sender:
    """Raises RetryLater, AccessDenied and Refused."""

    def __init__(self, clients: Clients, bus: str) -> None:
        self._clients = clients
        self._bus = bus

    def caller(self) -> Caller:
        """Whose credentials these are: with the source, that decides which portal an event is from."""
        with translated("sts:GetCallerIdentity"):
            identity = self._clients.sts.get_caller_identity()
        return Caller(account=identity["Account"], arn=identity["Arn"])

    def put(self, source: str, detail_type: str, detail: Mapping[str, Any]) -> str:
        """The event's id. One entry is refused in the answer, not by an error of the call.
        https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html"""
        entry = {"EventBusName": self._bus, "Source": source, "DetailType": detail_type, "Detail": json.dumps(detail)}
        with translated("events:PutEvents"):
            (result,) = self._clients.events.put_events(Entries=[entry])["Entries"]  # type: ignore[list-item]
        code, message = result.get("ErrorCode", ""), result.get("ErrorMessage", "")
        if code in DENIED:
            raise AccessDenied(f"events:PutEvents: {self._bus} does not take source {source} from you: {message}")
        if code:
            raise Refused("events:PutEvents", code, message)
        return result["EventId"]
