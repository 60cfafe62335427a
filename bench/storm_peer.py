"""aws-node-termination-handler in queue mode, on the same queue and API server, tuned as its documentation advises."""

from __future__ import annotations

import json
import subprocess
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import urllib3

from localcloud.clients import aws_client
from localcloud.cloud import LocalCloud

WORKERS = 50
QUERIES_PER_SECOND = 200
STOP_WITHIN_SECONDS = 10
ACCOUNT_FOLDER = "/run/secrets/kubernetes.io/serviceaccount"
"""Where a pod finds its token; the peer looks nowhere else.
https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/#directly-accessing-the-rest-api"""
IN_A_POD = f"""
mount -t tmpfs tmpfs /run
mkdir -p {ACCOUNT_FOLDER}
cp "$0"/* {ACCOUNT_FOLDER}
exec "$@"
"""
FLEET_SCOPES = ("/ec2/", "/autoscaling/")


class Peer:
    """The peer's process, from `with` to its end; it sees a /run of its own, as in a pod."""

    def __init__(self, binary: Path, cloud: LocalCloud, queue: str) -> None:
        self._binary, self._cloud, self._queue = binary, cloud, queue
        self._aws = ThreadingHTTPServer(("127.0.0.1", 0), _one_endpoint(cloud))
        self._aws.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._aws.serve_forever, name="peer's AWS", daemon=True).start()
        url = aws_client(self._cloud, "sqs").get_queue_url(QueueName=self._queue)["QueueUrl"]
        kubernetes = json.loads(self._cloud.wiring_file.read_text())["kubernetes"]
        account = self._cloud.state_dir / "peer"
        account.mkdir()
        (account / "token").write_text(kubernetes["admin_token"])
        (account / "ca.crt").write_bytes(Path(kubernetes["ca_file"]).read_bytes())
        endpoint = urlsplit(kubernetes["endpoint"])
        environment = self._cloud.environment() | {
            "KUBERNETES_SERVICE_HOST": str(endpoint.hostname),
            "KUBERNETES_SERVICE_PORT": str(endpoint.port),
        }
        command = [
            *("unshare", "--map-root-user", "--mount", "sh", "-e", "-c", IN_A_POD, str(account)),
            str(self._binary.resolve()),
            "--node-name=none",
            "--enable-sqs-termination-draining=true",
            "--check-tag-before-draining=false",
            "--use-provider-id=true",
            f"--queue-url={url}",
            f"--aws-endpoint=http://127.0.0.1:{self._aws.server_port}",
            f"--workers={WORKERS}",
            f"--kube-api-qps={QUERIES_PER_SECOND}",
            f"--kube-api-burst={QUERIES_PER_SECOND}",
        ]
        with (self._cloud.state_dir / "logs" / "peer.log").open("wb") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(STOP_WITHIN_SECONDS)
        self._aws.shutdown()
        self._aws.server_close()


def _one_endpoint(cloud: LocalCloud) -> type[BaseHTTPRequestHandler]:
    """The peer takes one endpoint for all of AWS; the local cloud has two."""
    http = urllib3.PoolManager(maxsize=WORKERS, retries=False)

    class Passage(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            with suppress(ConnectionError):  # the peer ends in the middle of a long poll
                super().handle_one_request()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            of_fleet = any(scope in self.headers.get("Authorization", "") for scope in FLEET_SCOPES)
            upstream = cloud.fleet_endpoint if of_fleet else cloud.aws_endpoint
            kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            answer = http.request("POST", upstream + self.path, body=body, headers=kept)
            self.send_response_only(answer.status)
            self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
            self.send_header("Content-Length", str(len(answer.data)))
            self.end_headers()
            self.wfile.write(answer.data)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the peer has a log of its own."""

    return Passage
