"""What cloud.json says: names and addresses of every part of one local cloud."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """The part of a cloud's wiring file that the emulated AWS needs. Endpoints are URLs, paths absolute."""

    state_dir: Path
    account: str
    region: str
    aws_endpoint: str
    fleet_endpoint: str
    cluster: str
    kubernetes_endpoint: str
    kubernetes_ca_file: Path

    @property
    def port(self) -> int:
        port = urlsplit(self.aws_endpoint).port
        if port is None:
            raise ValueError(f"aws_endpoint {self.aws_endpoint!r} names no port")
        return port

    @property
    def folder(self) -> Path:
        """Where this part keeps its files; nothing of it is needed after a stop."""
        return self.state_dir / "aws"

    @property
    def function_endpoints(self) -> dict[str, str]:
        """The AWS SDK's endpoint variables that functions and this process share.

        https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html
        """
        return {
            "AWS_ENDPOINT_URL": self.aws_endpoint,
            "AWS_ENDPOINT_URL_AUTO_SCALING": self.fleet_endpoint,
            "AWS_ENDPOINT_URL_EC2": self.fleet_endpoint,
        }


def read_wiring(environment: dict[str, str] | None = None) -> Wiring:
    """Read the file that LOCALCLOUD_FILE names. KeyError or ValueError where it is incomplete."""
    path = Path((environment if environment is not None else dict(os.environ))["LOCALCLOUD_FILE"])
    wired: dict[str, Any] = json.loads(path.read_text())
    return Wiring(
        state_dir=Path(wired["state_dir"]),
        account=wired["account"],
        region=wired["region"],
        aws_endpoint=wired["aws_endpoint"],
        fleet_endpoint=wired["fleet_endpoint"],
        cluster=wired["cluster"],
        kubernetes_endpoint=wired["kubernetes"]["endpoint"],
        kubernetes_ca_file=Path(wired["kubernetes"]["ca_file"]),
    )
