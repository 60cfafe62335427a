"""A bus's resource policy, enforced on every entry of PutEvents and on every event that a rule forwards.

Missing upstream: the policy is kept and never read, and PutPermission drops a whole `Policy`.
The identity side (the caller's own IAM policies) is not evaluated here: see README.md.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-event-bus-perms.html
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-conditions.html
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from localcloud.aws.callers import Caller
from localcloud.aws.upstream import replace, require

SOURCE_KEY, DETAIL_TYPE_KEY = "events:source", "events:detail-type"


@dataclass(frozen=True)
class Bus:
    """One bus and where it is."""

    account: str
    region: str
    name: str

    @property
    def arn(self) -> str:
        return f"arn:aws:events:{self.region}:{self.account}:event-bus/{self.name}"


@dataclass(frozen=True)
class Refusal:
    """One failed entry, in the words of PutEventsResultEntry."""

    code: str
    message: str


def install() -> None:
    """Take whole policies in PutPermission. UpstreamChanged where policies are kept differently."""
    from ministack.core import iam_evaluator
    from ministack.core.responses import json_response
    from ministack.services import eventbridge

    require(eventbridge, "_event_bus_policies")
    require(iam_evaluator, "EvalContext", "evaluate_resource_policy")

    def put_permission(data: dict[str, Any]) -> Any:
        if "Policy" not in data:
            return upstream_put(data)
        eventbridge._event_bus_policies[data.get("EventBusName", "default")] = json.loads(data["Policy"])
        return json_response({})

    upstream_put = replace(eventbridge, "_put_permission", "data", put_permission)


def policy_refusal(bus: Bus, caller: Caller, *, source: str, detail_type: str, forwarded: bool) -> Refusal | None:
    """Why the bus's policy refuses this event from this caller, or None.

    A Deny binds everybody; a caller of another account needs an Allow besides. `forwarded`: a rule of another bus
    sends it, which `events:eventBusInvocation` tells.
    """
    from ministack.core.iam_evaluator import EvalContext, evaluate_resource_policy
    from ministack.services import eventbridge

    policy = eventbridge._event_bus_policies.get_scoped(bus.account, bus.region, bus.name) or {"Statement": []}
    context = EvalContext(
        principal_arn=caller.arn,
        principal_type="AssumedRole" if ":assumed-role/" in caller.arn else "Account",
        principal_account=caller.account,
        action="events:PutEvents",
        resource_arn=bus.arn,
        region=bus.region,
        service_context={
            SOURCE_KEY: source,
            DETAIL_TYPE_KEY: detail_type,
            "events:eventbusinvocation": str(forwarded).lower(),
        },
    )
    result = evaluate_resource_policy(policy, context)
    if result.decision == "Deny":
        return refusal_of(
            [statement for statement in policy["Statement"] if statement.get("Sid", "") == result.matched_sid]
        )
    if caller.account != bus.account and result.decision != "Allow":
        return refusal_of([statement for statement in policy["Statement"] if statement["Effect"] == "Allow"])
    return None


def refusal_of(statements: list[dict[str, Any]]) -> Refusal:
    """AWS tells a refused source and a refused detail type from a refused caller: so do these statements' conditions.

    https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html
    """
    conditions = [tests for statement in statements for tests in statement.get("Condition", {}).values()]
    keys = {key.lower() for tests in conditions for key in tests}
    if SOURCE_KEY in keys:
        return Refusal("NotAuthorizedForSourceException", "Not authorized for the source.")
    if DETAIL_TYPE_KEY in keys:
        return Refusal("NotAuthorizedForDetailTypeException", "Not authorized for the detail type.")
    return Refusal("AccessDeniedException", "Not authorized to put events on this event bus.")
