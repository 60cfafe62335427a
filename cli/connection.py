"""What a command speaks to: AWS with the operator's own credentials, or a local cloud."""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aws_lambda_powertools import Logger

from cli.answers import wrong_use
from cli.options import ONLY_CLOUD, Target
from cli.sender import Sender
from firstbell.cloud.session import Clients
from firstbell.cluster.client import ApiServer
from firstbell.cluster.kubernetes import KubernetesCluster
from firstbell.settings import Deployment, parse_cluster
from firstbell.telemetry import Telemetry
from firstbell.wiring import Wiring
from infra.names import bus_name, table_name
from infra.operator_file import load, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import typer

    from firstbell.capacity.pools import Pool
    from firstbell.cloud.autoscaling import AutoScaling
    from firstbell.cloud.instance_types import InstanceTypes
    from firstbell.cloud.ledger import Ledger
    from firstbell.settings import Cluster
    from infra.operator_file import OperatorFile

USUAL_FILE = Path("firstbell.yaml")
CLOUDS = Path(".localcloud")


class Silence(Telemetry):
    """Metrics are the functions' to report; a command that looks as they do must not count as one of their runs."""

    def __init__(self) -> None:
        self.log = Logger(service="cli", level="CRITICAL")

    def emit(self, name: str, value: float = 1, **dimensions: str) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Connection:
    """One deployment and what it looks after. Nothing is called before it is needed."""

    settings: Cluster
    ledger: Ledger
    autoscaling: AutoScaling
    instance_types: InstanceTypes
    group_name: Callable[[Pool], str]
    cluster: Callable[[], KubernetesCluster]
    api: Callable[[], ApiServer]
    sender: Sender
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def connected(ctx: typer.Context, target: Target) -> Connection:
    """The deployment that the options name. Tests give their own way to it as the context's object."""
    connection: Connection = (ctx.obj or connect)(target)
    return connection


def connect(target: Target) -> Connection:
    """Raises WrongFile, ConfigurationError."""
    cloud = _local_cloud(target.local) if target.local is not None else None
    file = target.file or _usual_file(cloud)
    settings = parse_cluster(resolve(loaded := load(file), _cluster_name(loaded, target.cluster, file)))
    if cloud is not None:
        _enter(cloud)
    elif target.profile:
        os.environ["AWS_PROFILE"] = target.profile
    wiring = OperatorWiring(
        logger=Silence().log,
        settings=settings,
        deployment=Deployment(bus_name=bus_name(settings.name), ledger_table=table_name(settings.name)),
        clients=Clients(settings.region),
    )
    wiring.local = cloud
    return Connection(
        settings=settings,
        ledger=wiring.ledger,
        autoscaling=wiring.autoscaling,
        instance_types=wiring.instance_types,
        group_name=wiring.group_name,
        cluster=lambda: wiring.cluster,
        api=lambda: wiring.api,
        sender=Sender(wiring.clients, wiring.deployment.bus_name),
    )


class OperatorWiring(Wiring):
    """The functions' own adapters, with the operator's credentials."""

    local: Mapping[str, Any] | None = None

    @cached_property
    def cluster(self) -> KubernetesCluster:
        return KubernetesCluster(self.api)

    @cached_property
    def api(self) -> ApiServer:
        """On AWS as the caller's access entry lets in; on a local cloud as its administrator."""
        if self.local is not None:
            plane = self.local["kubernetes"]
            ca = Path(plane["ca_file"]).read_text()
            return ApiServer(plane["endpoint"], ca, lambda: str(plane["admin_token"]), time.time)
        endpoint = self.eks.describe(self.settings.name)
        return ApiServer(endpoint.endpoint, endpoint.ca_data, self.eks.token_source(self.settings.name), time.time)


def _local_cloud(name: str) -> Mapping[str, Any]:
    """What `cloud.json` says of the local cloud of that name, which has to run."""
    if name != ONLY_CLOUD:
        cloud = _wiring((Path(name) if os.sep in name else CLOUDS / name) / "cloud.json")
        if not _runs(cloud):
            raise wrong_use(f"--local: {cloud['name']} does not run; `make up` starts a local cloud")
        return cloud
    running = [cloud for file in sorted(CLOUDS.glob("*/cloud.json")) if _runs(cloud := _wiring(file))]
    if len(running) != 1:
        there = ", ".join(cloud["name"] for cloud in running) or "none; `make up` starts one"
        raise wrong_use(f"--local: needs a name where not just one cloud runs in {CLOUDS}; these do: {there}")
    return running[0]


def _wiring(file: Path) -> Mapping[str, Any]:
    try:
        document: Mapping[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise wrong_use(f"--local: {file} cannot be read ({error}); `make up` starts a local cloud") from error
    return document


def _runs(cloud: Mapping[str, Any]) -> bool:
    """The file of a cloud that was stopped stays."""
    address = urlsplit(cloud["aws_endpoint"])
    try:
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=1):
            return True
    except OSError:
        return False


def _usual_file(cloud: Mapping[str, Any] | None) -> Path:
    """What was deployed to a local cloud may lie beside it."""
    beside = Path(cloud["state_dir"]) / USUAL_FILE if cloud else USUAL_FILE
    return beside if beside.exists() else USUAL_FILE


def _cluster_name(file: OperatorFile, asked: str | None, path: Path) -> str:
    names = [cluster.name for cluster in file.clusters]
    if asked is None and len(names) == 1:
        return names[0]
    if asked not in names:
        said = f"is {asked!r}" if asked else "is needed where the file has several clusters"
        raise wrong_use(f"--cluster: {said}; allowed by {path}: {', '.join(names)}")
    return str(asked)


def _enter(cloud: Mapping[str, Any]) -> None:
    """Points every client that this process makes at the local cloud, whatever the environment said before."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(
        {
            "AWS_ENDPOINT_URL": cloud["aws_endpoint"],
            "AWS_ENDPOINT_URL_AUTO_SCALING": cloud["fleet_endpoint"],
            "AWS_ENDPOINT_URL_EC2": cloud["fleet_endpoint"],
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": cloud["region"],
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }
    )
