"""A gate that every call of one deployed function passes, to AWS as to Kubernetes: a call can be counted, answered by
the test, or be the last thing that its process does."""

from __future__ import annotations

import json
import os
import signal
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import urllib3

from localcloud.clients import aws_client
from localcloud.cloud import LocalCloud

NOT_FORWARDED = frozenset({"connection", "content-length", "host", "transfer-encoding", "keep-alive"})
SILENT_SECONDS = 30.0


@dataclass(frozen=True)
class Call:
    """`operation`: `dynamodb:PutItem`, `autoscaling:DetachInstances`, or `PATCH /api/v1/nodes/ip-10-0-0-5`."""

    operation: str
    token: str
    """What the caller authenticates with."""
    body: bytes


@dataclass(frozen=True)
class Killed:
    """The calling process dies: before the call is made, or when it is done and nobody has heard the answer."""

    after: bool


@dataclass(frozen=True)
class Answered:
    """The call is not made; this is what the caller hears instead."""

    code: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Silent:
    """The call is not made and never answered."""


Fate = Killed | Answered | Silent
Decide = Callable[[Call], Fate | None]


class Gate:
    """Open while the block lasts; `decide` says what becomes of each call (None: it passes)."""

    def __init__(self, cloud: LocalCloud, function: str) -> None:
        self.calls: list[Call] = []
        self.kills = 0
        self.decide: Decide = lambda call: None
        self._cloud, self._function = cloud, function
        self._lambda = aws_client(cloud, "lambda")
        self._lock = threading.Lock()
        self._servers: list[ThreadingHTTPServer] = []

    def __enter__(self) -> Self:
        kubernetes = json.loads(self._cloud.wiring_file.read_text())["kubernetes"]
        self.authority = Path(kubernetes["ca_file"])
        pki = self.authority.parent
        api_server = self._listen(kubernetes["endpoint"], certificate=(pki / "server.crt", pki / "server.key"))
        renamed = (kubernetes["endpoint"].encode(), api_server.encode())
        fleet = self._listen(self._cloud.fleet_endpoint)
        self._variables = self._configured()
        self._configure(
            self._variables
            | {
                "AWS_ENDPOINT_URL": self._listen(self._cloud.aws_endpoint, renamed=renamed),
                "AWS_ENDPOINT_URL_AUTO_SCALING": fleet,
                "AWS_ENDPOINT_URL_EC2": fleet,
                "AWS_ENDPOINT_URL_STS": self._cloud.aws_endpoint,
            }
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._configure(self._variables)
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def fate_of(self, call: Call) -> Fate | None:
        with self._lock:
            self.calls.append(call)
            return self.decide(call)

    def kill(self, client_port: int, gate_port: int) -> None:
        """SIGKILL to the process of the function that holds this connection."""
        environments = urllib3.request("GET", f"{self._cloud.aws_endpoint}/_localcloud/environments").json()
        for environment in environments:
            if environment["function"] == self._function and _holds(environment["pid"], client_port, gate_port):
                os.kill(environment["pid"], signal.SIGKILL)
                self.kills += 1
                return
        raise AssertionError("no environment of the function holds the connection")

    def _listen(
        self, upstream: str, *, certificate: tuple[Path, Path] | None = None, renamed: tuple[bytes, bytes] | None = None
    ) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _passage(self, upstream, renamed))
        server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self._servers.append(server)
        threading.Thread(target=server.serve_forever, name=f"gate to {upstream}", daemon=True).start()
        return f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"

    def _configured(self) -> dict[str, str]:
        answer = self._lambda.get_function_configuration(FunctionName=self._function)
        return dict(answer["Environment"]["Variables"])

    def _configure(self, variables: Mapping[str, str]) -> None:
        self._lambda.update_function_configuration(
            FunctionName=self._function, Environment={"Variables": dict(variables)}
        )


def _passage(gate: Gate, upstream: str, renamed: tuple[bytes, bytes] | None) -> type[BaseHTTPRequestHandler]:
    http = urllib3.PoolManager(ca_certs=str(gate.authority), maxsize=32, retries=False)

    class Passage(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            with suppress(ConnectionError, ssl.SSLError):
                super().handle_one_request()

        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = dict(self.headers.items())
            call = Call(_operation(self.command, self.path, headers, body), headers.get("Authorization", ""), body)
            fate = gate.fate_of(call)
            match fate:
                case Killed(after=False):
                    self._die()
                    return
                case Silent():
                    time.sleep(SILENT_SECONDS)
                    self.close_connection = True
                    return
                case Answered(code, document, more):
                    self._answer(code, {"Content-Type": "application/json", **more}, json.dumps(document).encode())
                    return
            kept = {name: value for name, value in headers.items() if name.lower() not in NOT_FORWARDED}
            answer = http.request(self.command, upstream + self.path, body=body, headers=kept, decode_content=False)
            if fate is not None:
                self._die()
                return
            self._answer(answer.status, answer.headers, answer.data.replace(*renamed) if renamed else answer.data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on  # noqa: N815  # http.server's names

        def _die(self) -> None:
            gate.kill(self.client_address[1], self.connection.getsockname()[1])
            self.close_connection = True

        def _answer(self, code: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response_only(code)
            for name, value in headers.items():
                if name.lower() not in NOT_FORWARDED:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the tests read `Gate.calls`."""

    return Passage


def _operation(method: str, path: str, headers: Mapping[str, str], body: bytes) -> str:
    target = headers.get("X-Amz-Target")
    if target:
        service, _, action = target.partition(".")
        return f"{service.partition('_')[0].removeprefix('Amazon').removeprefix('AWS').lower()}:{action}"
    if method == "POST" and headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded"):
        [action] = parse_qs(body.decode())["Action"]
        return f"query:{action}"
    return f"{method} {urlsplit(path).path}"


def _holds(pid: int, local_port: int, remote_port: int) -> bool:
    """Whether the process holds the TCP connection between these two loopback ports (proc(5), /proc/net/tcp)."""
    ends = (f"{local_port:04X}", f"{remote_port:04X}")
    inodes = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if (fields[1].rpartition(":")[2], fields[2].rpartition(":")[2]) == ends:
            inodes.add(f"socket:[{fields[9]}]")
    with suppress(FileNotFoundError):
        return any(os.readlink(link) in inodes for link in Path(f"/proc/{pid}/fd").iterdir())
    return False
