"""aws-node-termination-handler in queue mode, on the same queue and API server, tuned as its documentation advises."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from localcloud.clients import aws_client
from localcloud.cloud import LocalCloud

WORKERS = 50
QUERIES_PER_SECOND = 200
STOP_WITHIN_SECONDS = 10


class Peer:
    """The peer's process, from `with` to its end."""

    def __init__(self, binary: Path, cloud: LocalCloud, queue: str) -> None:
        self._binary, self._cloud, self._queue = binary, cloud, queue
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        url = aws_client(self._cloud, "sqs").get_queue_url(QueueName=self._queue)["QueueUrl"]
        command = [
            str(self._binary.resolve()),
            "--enable-sqs-termination-draining=true",
            f"--queue-url={url}",
            f"--workers={WORKERS}",
            f"--kube-api-qps={QUERIES_PER_SECOND}",
            f"--kube-api-burst={QUERIES_PER_SECOND}",
        ]
        log = self._cloud.state_dir / "logs" / "peer.log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(command, env=self._cloud.environment(), stdout=output, stderr=output)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOP_WITHIN_SECONDS)
