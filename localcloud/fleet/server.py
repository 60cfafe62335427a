"""One HTTP endpoint: Auto Scaling is ours, EC2 is moto's, the control door is for tests and the demo."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from localcloud.fleet import door, machines
from localcloud.fleet.api import act, protocol
from localcloud.fleet.errors import Refused
from localcloud.fleet.fleet import Fleet

XML = "text/xml"
_CREDENTIAL = re.compile(r"Credential=([^/]+)/[^/]+/([^/]+)/([^/,]+)/")
WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Endpoint:
    """The WSGI application. moto's own application stays behind it for EC2."""

    def __init__(self, fleet: Fleet, moto: WSGI) -> None:
        self.fleet = fleet
        self._moto = moto

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environ)
        if request.path.startswith(door.PREFIX):
            return self._door(request)(environ, start_response)
        access_key, service = _caller(request)
        if service == "autoscaling":
            return self._autoscaling(request, access_key)(environ, start_response)
        return self._ec2(request, access_key)(environ, start_response)

    def _door(self, request: Request) -> Response:
        try:
            body = json.loads(request.get_data() or b"{}")
            return Response(
                json.dumps(door.knock(self.fleet, request.method, request.path, body)),
                content_type="application/json",
            )
        except Refused as refused:
            return Response(json.dumps({"error": refused.message}), refused.status, content_type="application/json")

    def _autoscaling(self, request: Request, access_key: str) -> Response:
        form = {**request.args.to_dict(), **request.form.to_dict()}
        action = form.pop("Action", "")
        form.pop("Version", None)
        parameters: dict[str, Any] = dict(form)
        try:
            self.fleet.faults.throttle("autoscaling", action)
            parameters = protocol.parse(action, form)
            with self.fleet.timers.lock:
                answer = protocol.serialise(action, act(self.fleet, action, parameters))
            self.fleet.journal.call("autoscaling", action, parameters, access_key, None)
            return Response(answer, content_type=XML)
        except Refused as refused:
            self.fleet.journal.call("autoscaling", action, parameters, access_key, refused.code)
            return Response(protocol.autoscaling_error(refused), refused.status, content_type=XML)

    def _ec2(self, request: Request, access_key: str) -> Response:
        body = request.get_data(cache=True, parse_form_data=False)
        form = Request.from_values(data=body, content_type="application/x-www-form-urlencoded", method="POST").form
        action = form.get("Action") or request.args.get("Action", "")
        parameters = {key: value for key, value in form.items() if key not in ("Action", "Version")}
        try:
            self.fleet.faults.throttle("ec2", action)
        except Refused as refused:
            self.fleet.journal.call("ec2", action, parameters, access_key, refused.code)
            return Response(protocol.ec2_error(refused), refused.status, content_type=XML)
        environ = {**request.environ, "wsgi.input": BytesIO(body)}
        if action.startswith(
            "DescribeInstanceType"
        ):  # moto's catalogue never changes, and reading all of it takes long
            answer = Response.from_app(self._moto, environ, buffered=True)
        else:
            with self.fleet.timers.lock:
                answer = Response.from_app(self._moto, environ, buffered=True)
                if not action.startswith(("Describe", "Get")):
                    machines.notice_outside_changes(self.fleet)
        failed = str(answer.status_code) if answer.status_code >= 400 else None
        self.fleet.journal.call("ec2", action, parameters, access_key, failed)
        return answer


def _caller(request: Request) -> tuple[str, str]:
    """Access key and service of a signed request; an unsigned one is EC2's, as the door's users sign nothing."""
    match = _CREDENTIAL.search(request.headers.get("Authorization", ""))
    return (match[1], match[3]) if match else ("", "ec2")


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """The journal has every call; werkzeug's access log would say it twice."""


def serve(fleet: Fleet, host: str, port: int) -> BaseWSGIServer:
    """Bind the endpoint; the caller runs `serve_forever`."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    return make_server(
        host,
        port,
        Endpoint(fleet, DomainDispatcherApplication(create_backend_app)),
        threaded=True,
        request_handler=_Quiet,
    )
