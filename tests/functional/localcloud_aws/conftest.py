"""One really started emulated AWS for the session, on a free port, with its own state folder."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
import urllib3
from botocore.config import Config
from moto.server import ThreadedMotoServer

ACCOUNT, REGION, CLUSTER = "000000000000", "us-west-2", "hub"
CA = b"-----BEGIN CERTIFICATE-----\nlocal\n-----END CERTIFICATE-----\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class StartedCloud:
    endpoint: str
    fleet_endpoint: str
    kubernetes_endpoint: str
    process: subprocess.Popen[bytes]
    log: Path

    def fleet_client(self, service: str) -> Any:
        return self.client(service, endpoint=self.fleet_endpoint)

    def client(
        self,
        service: str,
        *,
        key: str = ACCOUNT,
        token: str | None = None,
        region: str = REGION,
        endpoint: str | None = None,
    ) -> Any:
        return boto3.client(
            service,  # type: ignore[call-overload]  # one helper for every service
            endpoint_url=endpoint or self.endpoint,
            region_name=region,
            aws_access_key_id=key,
            aws_secret_access_key="test",
            aws_session_token=token,
            config=Config(retries={"total_max_attempts": 1}),
        )

    def get(self, path: str) -> Any:
        return urllib3.request("GET", f"{self.endpoint}{path}", timeout=30).json()

    def post(self, path: str, body: Any) -> Any:
        answer = urllib3.request("POST", f"{self.endpoint}{path}", json=body, timeout=30)
        assert answer.status < 300, answer.data
        return answer.json() if answer.data else None


def start_cloud(folder: Path, *, fleet_endpoint: str) -> StartedCloud:
    ca_file = folder / "ca.crt"
    ca_file.write_bytes(CA)
    endpoint, kubernetes = f"http://127.0.0.1:{free_port()}", "https://127.0.0.1:6443"
    wiring = folder / "cloud.json"
    wiring.write_text(
        json.dumps(
            {
                "name": "test",
                "state_dir": str(folder),
                "region": REGION,
                "account": ACCOUNT,
                "aws_endpoint": endpoint,
                "fleet_endpoint": fleet_endpoint,
                "kubernetes": {"endpoint": kubernetes, "ca_file": str(ca_file)},
                "cluster": CLUSTER,
            }
        )
    )
    log = folder / "aws.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "localcloud.aws"],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "LOCALCLOUD_FILE": str(wiring)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    cloud = StartedCloud(endpoint, fleet_endpoint, kubernetes, process, log)
    wait_until_serving(cloud)
    return cloud


def wait_until_serving(cloud: StartedCloud, timeout_seconds: float = 60) -> None:
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            urllib3.request("GET", f"{cloud.endpoint}/_ministack/health", timeout=5, retries=False)
        except urllib3.exceptions.HTTPError:
            if cloud.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the emulated AWS did not start:\n{cloud.log.read_text()}") from None
            time.sleep(0.1)
        else:
            return


@pytest.fixture(scope="session")
def fleet_endpoint() -> Iterator[str]:
    """A plain Auto Scaling and EC2 API in the fleet's place: what these tests need is that calls arrive."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory, fleet_endpoint: str) -> Iterator[StartedCloud]:
    started = start_cloud(tmp_path_factory.mktemp("aws"), fleet_endpoint=fleet_endpoint)
    yield started
    started.process.terminate()
    started.process.wait(timeout=20)
