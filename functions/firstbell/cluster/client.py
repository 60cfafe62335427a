"""Plain REST to one API server: connections, tokens, patience, pages. docs/adr/0005 says why not the usual client."""

from __future__ import annotations

import json
import ssl
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import urllib3

from firstbell.cluster.auth import RenewedToken
from firstbell.cluster.status import ApiPageExpired, ApiSilent, Status, error_of, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from firstbell.cluster.auth import TokenSource

T = TypeVar("T")

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"

IDLE_SECONDS = 60.0
"""Connections older than this without use are not trusted: while an environment is frozen, a NAT gateway forgets a
flow after 350 s and a request over it would only end at the read timeout.
https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-troubleshooting.html"""

LIST_ATTEMPTS = 4
"""How often a list is begun before going stale between its pages (410) counts as an API server too slow for us."""


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    query: str
    payload: bytes | None
    content_type: str
    read_timeout_seconds: float

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class ApiServer:
    """One API server, safe for threads. Every error that leaves it is one of `firstbell.errors`."""

    def __init__(
        self,
        endpoint: str,
        ca_data: str,
        token_source: TokenSource,
        clock: Callable[[], float],
        *,
        connect_timeout_seconds: float = 2.0,
        read_timeout_seconds: float = 10.0,
        connections: int = 16,
        patience_seconds: float = 5.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`ca_data` is the CA's PEM text; `patience_seconds` bounds what one request waits for 429 and 503 in all."""
        self._endpoint = endpoint
        self._ca_data = ca_data
        self._token = RenewedToken(token_source, clock)
        self._clock = clock
        self._connect_timeout_seconds = connect_timeout_seconds
        self._read_timeout_seconds = read_timeout_seconds
        self._connections = connections
        self._patience_seconds = patience_seconds
        self._sleep = sleep
        self._lock = threading.Lock()
        self._pool: urllib3.HTTPConnectionPool | None = None
        self._used_at = 0.0

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = JSON,
        read_timeout_seconds: float | None = None,
        patience_seconds: float | None = None,
    ) -> dict[str, Any]:
        """One request, its answer parsed. A 401 is tried once more with a new token; 429 and 503 as often as patience
        lasts, no sooner than their Retry-After; a broken connection once more if the request only reads.

        Raises AccessDenied, NotFound, Conflict, PageExpired, ClusterUnreachable (silence, 5xx, 429) or ApiRefused.
        """
        sent = _Request(
            method=method,
            path=path,
            query=urlencode(query) if query else "",
            payload=None if body is None else json.dumps(body).encode(),
            content_type=content_type,
            read_timeout_seconds=read_timeout_seconds or self._read_timeout_seconds,
        )
        patience = self._patience_seconds if patience_seconds is None else patience_seconds
        while True:
            answer, status = self._authenticated(sent)
            if status is None:
                return answer
            wait = max(status.retry_after_seconds, 0.5)
            if status.code not in (429, 503) or "DisruptionBudget" in status.causes or wait > patience:
                raise error_of(str(sent), status)
            patience -= wait
            self._sleep(wait)

    def list_all(
        self,
        path: str,
        parse: Callable[[dict[str, Any]], T | None],
        *,
        field_selector: str = "",
        label_selector: str = "",
        limit: int = 500,
    ) -> list[T]:
        """Every item of a list, parsed page by page so that one page of raw JSON is held at a time.

        `parse` may answer None for an item that is not wanted. A list that goes stale between two pages (410) begins
        again from nothing. https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
        """
        query = {"limit": str(limit)}
        if field_selector:
            query["fieldSelector"] = field_selector
        if label_selector:
            query["labelSelector"] = label_selector
        for _ in range(LIST_ATTEMPTS):
            try:
                return self._pages(path, parse, query)
            except ApiPageExpired as error:
                stale = error
        raise ApiSilent(f"GET {path}: the list went stale {LIST_ATTEMPTS} times before it was read") from stale

    def close(self) -> None:
        """Drop the connections; the next request makes new ones."""
        with self._lock:
            if self._pool is not None:
                self._pool.close()
            self._pool = None

    def _pages(self, path: str, parse: Callable[[dict[str, Any]], T | None], query: dict[str, str]) -> list[T]:
        items: list[T] = []
        while True:
            page = self.request("GET", path, query=query)
            items += [item for raw in page.get("items") or () if (item := parse(raw)) is not None]
            token = (page.get("metadata") or {}).get("continue")
            del page  # else two pages of raw JSON are held while the next one is parsed
            if not token:
                return items
            query = query | {"continue": token}

    def _authenticated(self, request: _Request) -> tuple[dict[str, Any], Status | None]:
        token = self._token.current()
        answer, status = self._send(request, token)
        if status is not None and status.code == 401:
            answer, status = self._send(request, self._token.renewed(token))
        return answer, status

    def _send(self, request: _Request, token: str) -> tuple[dict[str, Any], Status | None]:
        headers = {"Authorization": f"Bearer {token}", "Accept": JSON, "User-Agent": "firstbell"}
        if request.payload is not None:
            headers["Content-Type"] = request.content_type
        try:
            response = self._exchange(request, headers)
        except urllib3.exceptions.HTTPError as error:
            raise ApiSilent(f"{request}: no answer from {self._endpoint}: {error}") from error
        return _parsed(response.status, response.data, response.headers.get("Retry-After") or "")

    def _exchange(self, request: _Request, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        def once() -> urllib3.BaseHTTPResponse:
            return self._connected().urlopen(
                request.method,
                f"{request.path}?{request.query}" if request.query else request.path,
                body=request.payload,
                headers=headers,
                timeout=urllib3.Timeout(connect=self._connect_timeout_seconds, read=request.read_timeout_seconds),
                retries=False,
                redirect=False,
            )

        try:
            return once()
        except urllib3.exceptions.ProtocolError:
            if request.method != "GET":
                raise
            return once()

    def _connected(self) -> urllib3.HTTPConnectionPool:
        now = self._clock()
        with self._lock:
            if self._pool is not None and now - self._used_at > IDLE_SECONDS:
                self._pool.close()
                self._pool = None
            if self._pool is None:
                self._pool = urllib3.connection_from_url(
                    self._endpoint,
                    maxsize=self._connections,
                    block=True,
                    ssl_context=ssl.create_default_context(cadata=self._ca_data),
                )
            self._used_at = now
            return self._pool


def _parsed(http_code: int, data: bytes, retry_after: str) -> tuple[dict[str, Any], Status | None]:
    """The JSON object of an answer and the refusal in it. What is not a JSON object came from something in between."""
    try:
        body = json.loads(data)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        if http_code < 400:
            return {}, Status(code=502, message="the answer is not a JSON object")
        return {}, refusal(http_code, {"kind": "Status", "message": data[:200].decode(errors="replace")}, retry_after)
    return body, refusal(http_code, body, retry_after)
