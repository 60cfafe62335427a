"""The Kubernetes API's own answer to a refused request, and our errors made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firstbell.errors import AccessDenied, ClusterUnreachable, Conflict, FirstbellError, NotFound, PageExpired

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Status:
    """A `Status` object (k8s.io/apimachinery/pkg/apis/meta/v1), or what stands for one where a proxy answered."""

    code: int
    reason: str = ""
    message: str = ""
    causes: tuple[str, ...] = ()
    """Reasons of `details.causes` (DisruptionBudget, NamespaceTerminating...)."""
    retry_after_seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.code} {self.reason}: {self.message}" if self.reason else f"{self.code}: {self.message}"


class StatusError(FirstbellError):
    """A request that the API server answered and refused; carries its `status`."""

    def __init__(self, request: str, status: Status) -> None:
        super().__init__(f"{request}: {status}")
        self.status = status


class ApiRefused(StatusError):
    """A refusal that neither a retry nor an operator's grant heals (400, 422...): a fault of ours."""


class ApiDenied(StatusError, AccessDenied):
    """401 with a fresh token too, or 403."""


class ApiNotFound(StatusError, NotFound):
    """404."""


class ApiConflict(StatusError, Conflict):
    """409."""


class ApiPageExpired(StatusError, PageExpired):
    """410."""


class ApiFailed(StatusError, ClusterUnreachable):
    """5xx."""


class ApiThrottled(StatusError, ClusterUnreachable):
    """429, of the API server's flow control or of an eviction's budget; the causes tell them apart."""


class ApiSilent(ClusterUnreachable):
    """No answer: refused or broken connection, TLS failure, timeout. What the server did is unknown."""


_BY_CODE: dict[int, type[StatusError]] = {
    401: ApiDenied,
    403: ApiDenied,
    404: ApiNotFound,
    409: ApiConflict,
    410: ApiPageExpired,
    429: ApiThrottled,
}


def error_of(request: str, status: Status) -> StatusError:
    """The error that a refused request raises; `request` is its method and path, for the message."""
    return _BY_CODE.get(status.code, ApiFailed if status.code >= 500 else ApiRefused)(request, status)


def refusal(http_code: int, body: Mapping[str, Any], retry_after: str = "") -> Status | None:
    """The refusal in an answer; None where it succeeded.

    A body `Status` of `Failure` counts whatever the HTTP code says: the eviction of a pod under two budgets is such an
    object (k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go). `retry_after` is the header; only its form in
    seconds is used, which is the one that the API server sends.
    """
    is_status = body.get("kind") == "Status"
    if http_code < 400 and not (is_status and body.get("status") == "Failure"):
        return None
    details = (body.get("details") if is_status else None) or {}
    seconds = float(retry_after) if retry_after.isdigit() else float(details.get("retryAfterSeconds") or 0)
    return Status(
        code=int((body.get("code") if is_status else None) or http_code),
        reason=str(body.get("reason") or "") if is_status else "",
        message=str(body.get("message") or "") if is_status else "",
        causes=tuple(str(cause.get("reason") or "") for cause in details.get("causes") or ()),
        retry_after_seconds=seconds,
    )
