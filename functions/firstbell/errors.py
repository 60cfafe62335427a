"""The errors that cross a folder's door. Adapters translate AWS's and Kubernetes' own errors into these."""

from __future__ import annotations


class FirstbellError(Exception):
    """Base of every error of ours."""

    operation: str = ""
    """The AWS call that failed, in IAM's spelling (`dynamodb:Query`); empty where it was none."""


class ConfigurationError(FirstbellError):
    """The operator's file or an environment variable is wrong: names the path, the value and what is allowed."""


class RetryLater(FirstbellError):
    """Something that a later attempt can heal (throttling, a timeout, a 5xx)."""


class ClusterUnreachable(RetryLater):
    """The Kubernetes API did not answer, or answered 5xx or 429 beyond our patience. Never reads as "no nodes"."""


class AccessDenied(FirstbellError):
    """Kubernetes or AWS refused us (401 after a fresh token, 403). An operator has to act."""


class Conflict(FirstbellError):
    """The object changed since it was read (409, failed condition). Read it again."""


class NotFound(FirstbellError):
    """The named object does not exist."""


class PageExpired(FirstbellError):
    """A paged Kubernetes list went stale (410 Gone). Start the list again."""
