"""Who may put which events on the cluster's bus: a pure list of policy statements.

An event's source is what a sender says it is, and inside one account an IAM policy alone would let any role say
`firstbell`. So besides what is allowed across accounts, every (principal, source) pair that the operator's file does
not list is denied. Condition keys: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-conditions.html
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from infra.names import DRILL_SOURCE, OUTCOME_SOURCE


@dataclass
class Senders:
    """Who may use a source."""

    accounts: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)

    def add(self, principal: str) -> None:
        (self.roles if principal.startswith("arn:") else self.accounts).append(principal)


def bus_statements(
    bus_arn: str,
    partition: str,
    *,
    signals: dict[str, Senders],
    drills: Senders,
    own_roles: list[str],
    forwarding_roles: list[str],
) -> dict[str, dict[str, Any]]:
    """Statement id -> statement.

    `signals` is source -> portals. `own_roles` are the functions', the only ones to speak as Firstbell.
    `forwarding_roles` carry portals' events here from other regions; they need no Allow, being of this account, and
    may not exist yet, which a Principal would have to.
    """
    senders = {**signals, DRILL_SOURCE: drills, OUTCOME_SOURCE: Senders(roles=own_roles)}
    statements: dict[str, dict[str, Any]] = {}
    for number, (source, allowed) in enumerate(senders.items()):
        carriers = forwarding_roles if source in signals else []
        statements[f"deny-{number}"] = _deny(
            bus_arn,
            {
                "StringEquals": {"events:source": source},
                **_nobody_of(Senders(allowed.accounts, [*allowed.roles, *carriers])),
            },
        )
        if source != OUTCOME_SOURCE and (allowed.accounts or allowed.roles):
            statements[f"allow-{number}"] = {
                "Effect": "Allow",
                "Principal": {"AWS": [_root(partition, a) for a in allowed.accounts] + allowed.roles},
                "Action": "events:PutEvents",
                "Resource": bus_arn,
                "Condition": {"StringEquals": {"events:source": source}},
            }
    statements["deny-other-sources"] = _deny(bus_arn, {"StringNotEquals": {"events:source": list(senders)}})
    return statements


def _deny(bus_arn: str, condition: dict[str, Any]) -> dict[str, Any]:
    return {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "events:PutEvents",
        "Resource": bus_arn,
        "Condition": condition,
    }


def _nobody_of(senders: Senders) -> dict[str, Any]:
    """True where the caller is in none of the accounts and is none of the roles (all keys of a condition must hold)."""
    keys: dict[str, list[str]] = {}
    if senders.accounts:
        keys["aws:PrincipalAccount"] = senders.accounts
    if senders.roles:
        keys["aws:PrincipalArn"] = senders.roles
    return {"StringNotEquals": keys} if keys else {}


def _root(partition: str, account: str) -> str:
    return f"arn:{partition}:iam::{account}:root"
