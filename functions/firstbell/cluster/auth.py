"""A bearer token that is renewed before the API server refuses it."""

from __future__ import annotations

import threading
from collections.abc import Callable

TokenSource = Callable[[], str]
"""Mints a new token. For EKS: `firstbell.cloud.eks.Eks.token_source`."""

LIFETIME_SECONDS = 14 * 60.0
"""EKS honours a presigned token for 15 minutes after it was signed; the minute less covers clocks and slow requests.
https://github.com/kubernetes-sigs/aws-iam-authenticator#how-does-it-work"""


class RenewedToken:
    """The current token of a warm environment, shared by its threads."""

    def __init__(self, source: TokenSource, clock: Callable[[], float]) -> None:
        self._source = source
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._minted_at = 0.0

    def current(self) -> str:
        """The token, minted anew once it is 14 minutes old."""
        with self._lock:
            if not self._token or self._clock() - self._minted_at >= LIFETIME_SECONDS:
                self._mint()
            return self._token

    def renewed(self, refused: str) -> str:
        """A token other than `refused`. Of many threads whose token was refused, the first one mints for all."""
        with self._lock:
            if self._token == refused:
                self._mint()
            return self._token

    def _mint(self) -> None:
        self._minted_at = self._clock()
        self._token = self._source()
