"""Ways into the emulated AWS that AWS itself does not have, under /_localcloud/.

POST /_localcloud/aws-events    an event of an AWS service (envelope; `time`, `id`, `resources`, `region` optional),
                                sent through the default bus's rules; answers {"id": ...}
GET  /_localcloud/environments  the Lambda execution environments: [{"function", "pid", "busy"}], for tests that
                                kill one
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from localcloud.aws.events import put_aws_event
from localcloud.aws.wiring import Wiring

PREFIX = "/_localcloud/"

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


def with_doors(application: Application, wiring: Wiring) -> Application:
    """`application` with the doors in front of it."""

    async def doors(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await application(scope, receive, send)
            return
        body = await read_body(receive)
        status, answer = answer_door(scope["method"], scope["path"].removeprefix(PREFIX), body, wiring)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    return doors


async def read_body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


def answer_door(method: str, door: str, body: bytes, wiring: Wiring) -> tuple[int, Any]:
    if (method, door) == ("GET", "environments"):
        return 200, environments()
    if (method, door) == ("POST", "aws-events"):
        try:
            return 200, {"id": put_aws_event(json.loads(body), wiring.account, wiring.region)}
        except (KeyError, TypeError, ValueError) as problem:
            return 400, {"error": f"not an event envelope: {problem!r}"}
    return 404, {"error": f"no door {method} {door}"}


def environments() -> list[dict[str, Any]]:
    from ministack.core import lambda_runtime

    with lambda_runtime._lock:
        workers = [worker for pool in lambda_runtime._workers.values() for worker in pool]
    running = [(worker, worker._proc) for worker in workers]
    return [
        {"function": worker.func_name, "pid": process.pid, "busy": worker.in_use}
        for worker, process in running
        if process is not None and process.poll() is None
    ]
