"""An HTTPS server on the loopback that plays an API server by script: real sockets, real TLS, real JSON."""

from __future__ import annotations

import datetime
import functools
import ipaddress
import json
import socket
import ssl
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Request:
    """What arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    token: str
    content_type: str
    body: Any
    connection: int
    """Which of the client's connections brought it, by the client's port."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back. `hang_up` closes the connection without an answer; `silent` never answers."""

    code: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    hang_up: bool = False
    silent: bool = False


def refusal(code: int, reason: str = "", message: str = "", *, causes: Iterable[str] = (), **headers: str) -> Answer:
    """A Status as the API server writes it; a header `retry_after` becomes Retry-After."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "details": {"causes": [{"reason": cause, "message": cause} for cause in causes]},
        "code": code,
    }
    return Answer(code, status, {name.replace("_", "-"): value for name, value in headers.items()})


def page(items: Iterable[Mapping[str, Any]], more: str = "") -> Answer:
    """One page of a list; `more` is its continue token."""
    return Answer(body={"kind": "List", "metadata": {"continue": more}, "items": list(items)})


class ScriptedApiServer:
    """Answers each request with the next answer of the script for its method and path, the last one for ever after."""

    def __init__(self) -> None:
        self.ca_data = certificate_authority()[0]
        self.requests: list[Request] = []
        self._script: dict[tuple[str, str], list[Answer | Callable[[Request], Answer]]] = {}
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.socket = _server_context().wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def endpoint(self) -> str:
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, method: str, path: str, *answers: Answer | Callable[[Request], Answer]) -> None:
        """An answer may also be made from its request."""
        self._script[method, path] = list(answers)

    def asked(self, method: str, path: str) -> list[Request]:
        """The requests that arrived for one method and path."""
        return [request for request in self.requests if (request.method, request.path) == (method, path)]

    def __enter__(self) -> ScriptedApiServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _next(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            answers = self._script.get((request.method, request.path))
            if not answers:
                return refusal(404, "NotFound", f"no script for {request.method} {request.path}")
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer if isinstance(answer, Answer) else answer(request)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self) -> None:
                script._play(self)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815 - http.server's own names

            def log_message(self, format: str, *args: Any) -> None:
                """Tests read `requests` instead."""

            def handle(self) -> None:
                try:
                    super().handle()
                except (OSError, ssl.SSLError):
                    self.close_connection = True

        return Handler

    def _play(self, handler: BaseHTTPRequestHandler) -> None:
        address = urlsplit(handler.path)
        length = int(handler.headers.get("Content-Length") or 0)
        answer = self._next(
            Request(
                method=handler.command,
                path=address.path,
                query=dict(parse_qsl(address.query, keep_blank_values=True)),
                token=(handler.headers.get("Authorization") or "").removeprefix("Bearer "),
                content_type=handler.headers.get("Content-Type") or "",
                body=json.loads(handler.rfile.read(length)) if length else None,
                connection=handler.client_address[1],
            )
        )
        if answer.silent:
            self._released.wait()
        if answer.silent or answer.hang_up:
            handler.close_connection = True
            return
        payload = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        handler.send_response(answer.code)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(payload)))
        handler.end_headers()
        handler.wfile.write(payload)


@contextmanager
def black_hole() -> Iterator[str]:
    """An endpoint that takes connections and never says a word: a route without a way back."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


@functools.cache
def certificate_authority(name: str = "firstbell test API server") -> tuple[str, bytes]:
    """A CA that is its own server certificate for 127.0.0.1: its PEM text, and its key's."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), secret


def _server_context() -> ssl.SSLContext:
    certificate, key = certificate_authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # the ssl module loads keys from files only
        file.write(certificate.encode() + key)
        file.flush()
        context.load_cert_chain(file.name)
    return context
