"""One local cloud: a Kubernetes control plane, an emulated AWS and the fleet between them, wired to each other."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from localcloud.addresses import Loopback
from localcloud.controlplane.build import ensure_programs
from localcloud.controlplane.plane import ControlPlane, ControlPlaneSettings
from localcloud.supervision import Child, Supervisor

Component = Literal["kubernetes", "aws", "fleet"]
ALL_COMPONENTS: frozenset[Component] = frozenset({"kubernetes", "aws", "fleet"})

ACCOUNT = "000000000000"
REGION = "us-west-2"
READY_WITHIN_SECONDS = 60.0
REPOSITORY = Path(__file__).resolve().parent.parent


class CloudRuns(Exception):
    """A cloud of this name runs already."""


@dataclass(frozen=True, kw_only=True)
class LocalCloudConfig:
    """What can differ between two clouds.

    An instance takes `boot_seconds` from its launch to a node; a pod `image_pull_seconds` to pull and then
    `start_seconds` to start; a node may miss heartbeats for `node_grace_seconds` before it is Unknown. `state_root`
    holds one folder per cloud.
    """

    name: str = "hub"
    cluster: str = "hub"
    boot_seconds: float = 1.0
    image_pull_seconds: float = 1.0
    start_seconds: float = 0.5
    node_grace_seconds: int = 50
    components: frozenset[Component] = ALL_COMPONENTS
    state_root: Path = Path(".localcloud")

    @property
    def state_dir(self) -> Path:
        return self.state_root.resolve() / self.name


class Occupancy:
    """The right to be the cloud of one name: a lock that ends with its process, and the process id of who holds it."""

    def __init__(self, state_dir: Path) -> None:
        state_dir.parent.mkdir(parents=True, exist_ok=True)
        self._file = (state_dir.parent / f"{state_dir.name}.lock").open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise CloudRuns(f"a cloud runs already in {state_dir}") from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        self._file.close()

    @staticmethod
    def holder(state_dir: Path) -> int | None:
        """The process id of the cloud that runs there, None if none does."""
        path = state_dir.parent / f"{state_dir.name}.lock"
        if not path.exists():
            return None
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read() or 0) or None
        return None


class LocalCloud:
    """A running cloud. `with LocalCloud.start(config) as cloud:` ends every process of it at the end of the block."""

    def __init__(
        self, config: LocalCloudConfig, control_plane: ControlPlane, supervisor: Supervisor, occupancy: Occupancy
    ) -> None:
        self.config = config
        self.state_dir = config.state_dir
        self.kubeconfig = control_plane.kubeconfig
        self.audit_log = control_plane.audit_log
        self.wiring_file = self.state_dir / "cloud.json"
        self._control_plane = control_plane
        self._supervisor = supervisor
        self._occupancy = occupancy
        self._aws, self._fleet = Loopback.free(), Loopback.free()

    @classmethod
    def start(cls, config: LocalCloudConfig, report: Callable[[str], None] = lambda _: None) -> Self:
        """Start a cloud and return when it can be used; `report` gets a line per step.

        Raises BuildFailed, CloudRuns, or ChildFailed with the end of the failed program's log.
        """
        programs = ensure_programs(report)
        occupancy = Occupancy(config.state_dir)
        shutil.rmtree(config.state_dir, ignore_errors=True)
        settings = ControlPlaneSettings(
            image_pull_seconds=config.image_pull_seconds,
            start_seconds=config.start_seconds,
            node_grace_seconds=config.node_grace_seconds,
        )
        control_plane = ControlPlane(config.state_dir / "kubernetes", programs, settings)
        cloud = cls(config, control_plane, Supervisor(config.state_dir / "logs"), occupancy)
        try:
            cloud._start(report)
        except BaseException:
            cloud.stop()
            raise
        return cloud

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def aws_endpoint(self) -> str:
        return self._aws.http

    @property
    def fleet_endpoint(self) -> str:
        return self._fleet.http

    @property
    def children(self) -> tuple[Child, ...]:
        return self._supervisor.children

    def environment(self) -> dict[str, str]:
        """This process's environment with every AWS and Kubernetes setting replaced by the cloud's own."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
        return kept | {
            "AWS_ENDPOINT_URL": self.aws_endpoint,
            "AWS_ENDPOINT_URL_AUTO_SCALING": self.fleet_endpoint,
            "AWS_ENDPOINT_URL_EC2": self.fleet_endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "CDK_DEFAULT_ACCOUNT": ACCOUNT,
            "CDK_DEFAULT_REGION": REGION,
            "KUBECONFIG": str(self.kubeconfig),
            "LOCALCLOUD_FILE": str(self.wiring_file),
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }

    def raise_if_any_ended(self) -> None:
        """Raise ChildFailed if a process of the cloud is no longer running."""
        self._supervisor.raise_if_any_ended()

    def stop(self) -> None:
        """End every process; logs and the audit log stay until the next start."""
        self._supervisor.stop()
        shutil.rmtree(self.state_dir / "kubernetes" / "etcd", ignore_errors=True)
        self._occupancy.release()

    def _start(self, report: Callable[[str], None]) -> None:
        self.wiring_file.write_text(json.dumps(self._wiring(), indent=1))
        environment = self.environment() | {"PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
        components = self.config.components
        # The emulated AWS needs seconds to import; it starts beside the control plane and waits for nobody.
        aws = self._launch("aws", environment) if "aws" in components else None
        if "kubernetes" in components:
            self._control_plane.start(self._supervisor, environment, report)
        if aws:
            self._await(aws, self._aws, report)
        if "fleet" in components:
            self._await(self._launch("fleet", environment), self._fleet, report)
        self.raise_if_any_ended()

    def _launch(self, name: Component, environment: dict[str, str]) -> Child:
        return self._supervisor.start(name, [sys.executable, "-m", f"localcloud.{name}"], environment=environment)

    def _await(self, child: Child, address: Loopback, report: Callable[[str], None]) -> None:
        started = time.monotonic()
        self._supervisor.await_ready(child, lambda: _listens(address), timeout_seconds=READY_WITHIN_SECONDS)
        report(f"{child.name} is ready ({time.monotonic() - started:.1f} s more)")

    def _wiring(self) -> dict[str, object]:
        plane = self._control_plane
        return {
            "name": self.config.name,
            "state_dir": str(self.state_dir),
            "region": REGION,
            "account": ACCOUNT,
            "cluster": self.config.cluster,
            "aws_endpoint": self.aws_endpoint,
            "fleet_endpoint": self.fleet_endpoint,
            "webhook_endpoint": plane.webhook_endpoint,
            "kubernetes": {
                "endpoint": plane.endpoint,
                "ca_file": str(plane.ca_file),
                "kubeconfig": str(plane.kubeconfig),
                "admin_token": plane.admin_token,
            },
            "boot_seconds": self.config.boot_seconds,
            "audit_log": str(self.audit_log),
        }


def _listens(address: Loopback) -> bool:
    try:
        with socket.create_connection((address.host, address.port), timeout=1.0):
            return True
    except OSError:
        return False
