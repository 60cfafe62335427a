"""From a rule to its target: what EventBridge may deliver, to where, and what becomes of what it cannot.

Missing upstream: a rule starts a function once and forgets it (no retry, no dead letter), looks at no resource policy,
sends nothing to a bus of another region or account, and knows no dead-letter queue of a target.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-cross-region.html
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html
"""

from __future__ import annotations

import json
import logging
from typing import Any

from localcloud.aws.bus_policy import Bus, Refusal, policy_refusal
from localcloud.aws.callers import Caller
from localcloud.aws.queues import put_message
from localcloud.aws.upstream import replace, require

logger = logging.getLogger("localcloud.delivery")


def install() -> None:
    """Replace ministack's way to functions and buses. UpstreamChanged where its targets are called differently."""
    from ministack.services import eventbridge, lambda_svc, sqs

    require(lambda_svc, "function_policy_for_arn", "_get_func_record_for_ref", "_execution_record_for_config")
    require(sqs, "_queue_by_arn")

    def invoke_target(target: dict[str, Any], event: dict[str, Any], rule: dict[str, Any], view: Any = None) -> None:
        refusal = delivery_refusal(target["Arn"], rule)
        if refusal is None:
            upstream_invoke(target, event, rule, view)
            return
        logger.warning("%s -> %s: %s (%s)", rule.get("Arn"), target["Arn"], refusal.message, refusal.code)
        dead_letter(target, event, rule, refusal)

    upstream_invoke = replace(eventbridge, "_invoke_target", "target event rule view", invoke_target)
    replace(eventbridge, "_dispatch_to_lambda", "arn payload", invoke_function)
    replace(eventbridge, "_dispatch_to_event_bus", "spec event rule event_path target_input_payload", forward_to_bus)


def delivery_refusal(target_arn: str, rule: dict[str, Any]) -> Refusal | None:
    """Why EventBridge's service principal may not deliver, or None. A schedule uses a role instead."""
    from ministack.services import lambda_svc, sqs

    if "Target" in rule:
        return None
    service = target_arn.split(":")[2]
    if service == "lambda":
        found = lambda_svc.function_policy_for_arn(target_arn)
        policy, action = (found[0], "lambda:InvokeFunction") if found else (None, "")
    elif service == "sqs":
        queue = sqs._queue_by_arn(target_arn)
        policy, action = (queue["attributes"].get("Policy") or "{}", "sqs:SendMessage") if queue else (None, "")
    else:
        return None
    if policy is None:
        return Refusal("RESOURCE_NOT_FOUND", f"{target_arn} does not exist")
    if not service_may(policy, action, target_arn, rule["Arn"]):
        return Refusal("NO_PERMISSIONS", f"the resource policy of {target_arn} does not let this rule {action}")
    return None


def service_may(policy: Any, action: str, target_arn: str, rule_arn: str) -> bool:
    from ministack.core.iam_evaluator import EvalContext, evaluate_resource_policy

    _, _, _, region, account, _ = rule_arn.split(":", 5)
    context = EvalContext(
        principal_arn="*",
        principal_type="Service",
        principal_account="",
        action=action,
        resource_arn=target_arn,
        region=region,
        # The service calls over TLS, whatever this emulator's own port speaks.
        secure_transport=True,
        service_context={"aws:sourcearn": rule_arn, "aws:sourceaccount": account},
    )
    allowed: bool = evaluate_resource_policy(policy, context, service="events.amazonaws.com").decision == "Allow"
    return allowed


def dead_letter(target: dict[str, Any], event: dict[str, Any], rule: dict[str, Any], refusal: Refusal) -> None:
    """The event and the reason, to the target's own dead-letter queue where it has one."""
    from ministack.services import eventbridge

    queue_arn = (target.get("DeadLetterConfig") or {}).get("Arn")
    if queue_arn:
        body = json.dumps(eventbridge._pattern_event_view(event).event_with_detail())
        reasons = {
            "RULE_ARN": rule.get("Arn", ""),
            "TARGET_ARN": target["Arn"],
            "ERROR_CODE": refusal.code,
            "ERROR_MESSAGE": refusal.message,
        }
        put_message(queue_arn, body, reasons)


def invoke_function(arn: str, payload: str) -> None:
    """Asynchronously, with the function's own retries and dead letters."""
    from ministack.services import lambda_svc

    function, config, _ = lambda_svc._get_func_record_for_ref(arn)
    if function is None:
        logger.warning("no function %s: an event for it is dropped", arn)
        return
    lambda_svc.invoke_async_with_retry(lambda_svc._execution_record_for_config(function, config), json.loads(payload))


def forward_to_bus(
    spec: Any, event: dict[str, Any], rule: dict[str, Any], _event_path: set[str], target_input_payload: Any = None
) -> None:
    """To a bus of this or another region or account, which must exist; its envelope stays the origin's.

    An event that came from another bus goes to no third one: EventBridge does not chain buses.
    """
    from ministack.core.responses import request_scope
    from ministack.services import eventbridge

    bus = Bus(spec.account_id, spec.region, spec.resource.removeprefix("event-bus/"))
    if event.get("_Forwarded"):
        logger.warning("%s: an event from another bus is not sent on to a third, %s", rule.get("Arn"), bus.arn)
        return
    target = next((target for target in rule_targets(rule) if target.get("Arn") == bus.arn), {"Arn": bus.arn})
    refusal = forwarding_refusal(bus, event, target.get("RoleArn"), rule)
    if refusal is not None:
        logger.warning("%s -> %s: %s (%s)", rule.get("Arn"), bus.arn, refusal.message, refusal.code)
        dead_letter(target, event, rule, refusal)
        return
    forwarded = {**event, "EventBusName": bus.name, "_Forwarded": True}
    if target_input_payload is not None:
        forwarded["Detail"] = target_input_payload
    with request_scope(bus.account, bus.region):
        eventbridge._dispatch_event(forwarded)
        eventbridge._archive_event(forwarded)


def rule_targets(rule: dict[str, Any]) -> list[dict[str, Any]]:
    from ministack.services import eventbridge

    key = eventbridge._rule_key(rule["Name"], rule.get("EventBusName", "default"))
    targets: list[dict[str, Any]] = eventbridge._targets.get(key, [])
    return targets


def forwarding_refusal(bus: Bus, event: dict[str, Any], role_arn: str | None, rule: dict[str, Any]) -> Refusal | None:
    """A missing bus, or what the bus's policy says to the target's role (to the sending account where it has none)."""
    from ministack.services import eventbridge

    exists = bus.name == "default" or eventbridge._event_buses.contains_scoped(bus.account, bus.region, bus.name)
    if not exists:
        return Refusal("RESOURCE_NOT_FOUND", f"{bus.arn} does not exist")
    account = rule["Arn"].split(":")[4]
    arn = f"arn:aws:iam::{account}:root"
    if role_arn:
        arn = f"arn:aws:sts::{account}:assumed-role/{role_arn.rsplit('/', 1)[-1]}/events"
    return policy_refusal(
        bus, Caller(arn, account), source=event["Source"], detail_type=event["DetailType"], forwarded=True
    )
