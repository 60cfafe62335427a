"""Findings of cdk-nag that are meant, each with its reason on the resource that it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_cdk import Acknowledgment, Stack, Validations

if TYPE_CHECKING:
    from constructs import IConstruct

PINNED_RUNTIME = "The wheels that are bundled, and the tests, are of this Python; it moves with them."


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """`rule` is AwsSolutions-<rule>, with the finding in brackets where there can be several."""
    Validations.of(construct).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))


def acknowledge_wildcard(construct: IConstruct, resource: str, reason: str) -> None:
    """For one resource of a policy that has a `*` in it."""
    acknowledge(construct, f"IAM5[Resource::{_spelled(Stack.of(construct).resolve(resource))}]", reason)


def _spelled(resolved: Any) -> str:
    """As cdk-nag spells a resource: <AWS::AccountId> for a reference."""
    if isinstance(resolved, str):
        return resolved
    if "Ref" in resolved:
        return f"<{resolved['Ref']}>"
    return "".join(_spelled(part) for part in resolved["Fn::Join"][1])
