"""Kubernetes times (RFC 3339, whole or micro seconds) and Unix seconds."""

from __future__ import annotations

from datetime import UTC, datetime


def unix_seconds(time: str | None) -> float:
    """0 for an absent time."""
    return datetime.fromisoformat(time).timestamp() if time else 0.0


def rfc3339(seconds: float) -> str:
    """In UTC, for people to read."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
