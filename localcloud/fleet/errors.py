"""What an API of the fleet refuses."""

from __future__ import annotations


class Refused(Exception):
    """An error answer of the AWS query API: a code, a message in AWS's words, and the HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


def invalid(message: str) -> Refused:
    """The answer that Auto Scaling gives to almost every request that it cannot follow."""
    return Refused("ValidationError", message)


def group_not_found(name: str) -> Refused:
    return invalid(f"AutoScalingGroup name not found - AutoScalingGroup {name} not found")
