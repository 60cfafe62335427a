"""`python -m localcloud.aws`: ministack on the port that cloud.json gives it, on loopback, without Docker.

Everything that ministack reads from the environment is set before its first import; then the extensions are
installed, and a change of shape upstream ends the start with UpstreamChanged instead of a strange cloud.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from typing import Any

from localcloud.aws.upstream import require_version
from localcloud.aws.wiring import Wiring, read_wiring


def prepare_environment(wiring: Wiring) -> None:
    """ministack's settings; a folder of its own for temporary files, emptied at each start."""
    shutil.rmtree(wiring.folder, ignore_errors=True)
    temporary = wiring.folder / "tmp"
    temporary.mkdir(parents=True)
    tempfile.tempdir = str(temporary)
    os.environ.update(
        {
            "GATEWAY_PORT": str(wiring.port),
            "BIND_HOST": "127.0.0.1",
            # An address makes AWS SDKs address buckets by path; a name would need *.localhost to resolve.
            "MINISTACK_HOST": "127.0.0.1",
            "MINISTACK_REGION": wiring.region,
            "MINISTACK_ACCOUNT_ID": wiring.account,
            "AWS_DEFAULT_REGION": wiring.region,
            "AWS_REGION": wiring.region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AUTH": "false",
            "LAMBDA_EXECUTOR": "local",
            "DOCKER_HOST": f"unix://{wiring.folder}/no-docker.sock",
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "S3_DATA_DIR": str(wiring.folder / "s3"),
            "TMPDIR": str(temporary),
            **wiring.function_endpoints,
        }
    )


def install_extensions(wiring: Wiring) -> None:
    """Every extension, in the order in which one rests on another."""
    from localcloud.aws import (
        bus_policy,
        callers,
        clusters,
        delivery,
        dropped_properties,
        environments,
        events,
        function_logs,
        groups,
        invocations,
        metrics,
        public_parameters,
        queues,
        resources,
        schedules,
    )

    environments.install(wiring)
    clusters.install(wiring)
    resources.install()
    dropped_properties.install()
    groups.install(wiring)
    queues.install()
    callers.install()
    bus_policy.install()
    events.install()
    delivery.install()
    invocations.install()
    metrics.install()
    function_logs.install()
    schedules.install()
    public_parameters.install()


async def serve(wiring: Wiring) -> None:
    """Serve until SIGTERM or SIGINT; functions that still run are ended first, as nobody waits for them."""
    from hypercorn.asyncio import serve as hypercorn_serve
    from hypercorn.config import Config
    from ministack.app import app
    from ministack.core import lambda_runtime

    from localcloud.aws.doors import with_doors

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    async def stopped() -> None:
        await stop.wait()
        await asyncio.to_thread(lambda_runtime.reset)

    config = Config()
    config.bind = [f"127.0.0.1:{wiring.port}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1
    config.loglevel = "WARNING"
    application: Any = with_doors(app, wiring)
    await hypercorn_serve(application, config, shutdown_trigger=stopped)


def main() -> int:
    """Run the emulated AWS of one local cloud; the exit code of the process."""
    require_version()
    wiring = read_wiring()
    prepare_environment(wiring)
    install_extensions(wiring)
    asyncio.run(serve(wiring))
    return 0


if __name__ == "__main__":
    sys.exit(main())
