"""Ask a server on loopback whether it is ready."""

from __future__ import annotations

import ssl
import urllib.request
from pathlib import Path

TIMEOUT_SECONDS = 2.0


def answers(url: str, authority: Path | None = None, token: str | None = None) -> bool:
    """True if a GET is answered with 2xx; a refused connection, a wrong certificate or any other status is False."""
    request = urllib.request.Request(url)  # noqa: S310 - our own http(s) endpoints on loopback
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        context = ssl.create_default_context(cafile=authority) if url.startswith("https:") else None
        # Without proxies: a proxy of the machine must not be asked for loopback.
        handlers = [urllib.request.ProxyHandler({})]
        opener = urllib.request.build_opener(
            *handlers, *([urllib.request.HTTPSHandler(context=context)] if context else [])
        )
        with opener.open(request, timeout=TIMEOUT_SECONDS) as response:
            return bool(200 <= response.status < 300)
    except OSError:
        return False
