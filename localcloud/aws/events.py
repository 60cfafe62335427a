"""PutEvents as AWS takes and refuses it, and the way in for AWS's own events.

Missing upstream: entries are not looked at (no refusal of missing or malformed fields, no size limit), `Time` is
ignored, a bus of another account cannot be named, and nobody can send an event whose source is `aws.*`.

https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html
"""

from __future__ import annotations

import json
import logging
import time
from datetime import datetime
from typing import Any

from localcloud.aws.bus_policy import Bus, Refusal, policy_refusal
from localcloud.aws.callers import current_caller, remember_callers_of
from localcloud.aws.upstream import replace, require

# https://aws.amazon.com/blogs/compute/more-room-to-build-serverless-services-now-support-payloads-up-to-1-mb/
LARGEST_REQUEST_BYTES = 1024 * 1024
MOST_ENTRIES = 10

logger = logging.getLogger("localcloud.events")


def install() -> None:
    """Replace PutEvents. UpstreamChanged where ministack dispatches differently."""
    from ministack.services import eventbridge

    require(eventbridge, "_dispatch_event", "_archive_event", "_pattern_event_view", "_event_buses")
    replace(eventbridge, "_put_events", "data allow_aws_source", put_events)
    remember_callers_of(eventbridge)


def put_events(data: dict[str, Any], allow_aws_source: bool = False) -> Any:
    """The answer to PutEvents: each entry is accepted or refused by itself."""
    from ministack.core.responses import error_response_json, json_response

    entries = data.get("Entries") or []
    if not 1 <= len(entries) <= MOST_ENTRIES:
        return error_response_json(
            "ValidationException", f"Entries must have between 1 and {MOST_ENTRIES} members", 400
        )
    if sum(entry_bytes(entry) for entry in entries) > LARGEST_REQUEST_BYTES:
        message = "Total size of the entries in the request is over the limit."
        return error_response_json("ValidationException", message, 400)
    results = [put_entry(entry, aws_source=allow_aws_source) for entry in entries]
    failed = sum("ErrorCode" in result for result in results)
    return json_response({"FailedEntryCount": failed, "Entries": results})


def entry_bytes(entry: dict[str, Any]) -> int:
    """https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html#eb-putevent-size"""
    texts = [entry.get("Source"), entry.get("DetailType"), entry.get("Detail"), *(entry.get("Resources") or [])]
    return (14 if entry.get("Time") else 0) + sum(len(text.encode()) for text in texts if isinstance(text, str))


def put_entry(entry: dict[str, Any], *, aws_source: bool) -> dict[str, str]:
    bus = named_bus(entry.get("EventBusName") or "default")
    refusal = entry_refusal(entry, aws_source=aws_source)
    if refusal is None:
        caller = current_caller()
        refusal = policy_refusal(bus, caller, source=entry["Source"], detail_type=entry["DetailType"], forwarded=False)
    if refusal is not None:
        return {"ErrorCode": refusal.code, "ErrorMessage": refusal.message}
    return {"EventId": accept(entry, bus)}


def named_bus(reference: str) -> Bus:
    """The bus that an entry names, by name or by ARN."""
    from ministack.core.responses import get_account_id, get_region

    if reference.startswith("arn:"):
        _, _, _, region, account, resource = reference.split(":", 5)
        return Bus(account, region, resource.removeprefix("event-bus/"))
    return Bus(get_account_id(), get_region(), reference)


def entry_refusal(entry: dict[str, Any], *, aws_source: bool) -> Refusal | None:
    """What is wrong with an entry, whoever sends it: missing fields, a reserved source, a detail that is no object."""
    for name in ("Source", "DetailType", "Detail"):
        if not entry.get(name):
            return Refusal("InvalidArgument", f"Parameter {name} is not valid. Reason: {name} is a required argument.")
    if entry["Source"].startswith("aws.") and not aws_source:
        return Refusal("NotAuthorizedForSourceException", "Not authorized for the source.")
    try:
        detail = json.loads(entry["Detail"])
    except (ValueError, RecursionError):
        detail = None
    return None if isinstance(detail, dict) else Refusal("MalformedDetail", "Detail is malformed.")


def accept(entry: dict[str, Any], bus: Bus, event_id: str | None = None) -> str:
    """Send an entry through the rules of `bus` and into its archives; the event's id.

    The envelope's account is the sender's. An event for a bus that does not exist is accepted and goes nowhere.
    """
    from ministack.core.responses import get_account_id, new_uuid, request_scope
    from ministack.services import eventbridge

    event = {
        "EventId": event_id or new_uuid(),
        "Source": entry["Source"],
        "DetailType": entry["DetailType"],
        "Detail": entry["Detail"],
        "EventBusName": bus.name,
        "Time": event_time(entry.get("Time")),
        "Resources": entry.get("Resources") or [],
        "Account": get_account_id(),
        "Region": bus.region,
    }
    with request_scope(bus.account, bus.region):
        if bus.name != "default" and bus.name not in eventbridge._event_buses:
            logger.warning("no event bus %s: event %s of %s is dropped", bus.arn, event["EventId"], event["Source"])
        view = eventbridge._pattern_event_view(event)
        eventbridge._dispatch_event(event, view)
        eventbridge._archive_event(event, view)
    identifier: str = event["EventId"]
    return identifier


def event_time(given: Any) -> int:
    """The envelope's time in Unix seconds (AWS keeps whole ones): the entry's own, else now."""
    if given is None:
        return int(time.time())
    if isinstance(given, str):
        return int(datetime.fromisoformat(given).timestamp())
    return int(given)


def put_aws_event(event: dict[str, Any], account: str, region: str) -> str:
    """Send an event as an AWS service does: to the default bus, past the refusal of `aws.*`. Returns its id.

    `event` is an envelope: source, detail-type, detail, and where wanted resources, time, id, region.
    """
    from ministack.core.responses import request_scope

    entry = {
        "Source": event["source"],
        "DetailType": event["detail-type"],
        "Detail": json.dumps(event["detail"]),
        "Resources": event.get("resources"),
        "Time": event.get("time"),
    }
    region = event.get("region", region)
    with request_scope(account, region):
        return accept(entry, Bus(account, region, "default"), event.get("id"))
