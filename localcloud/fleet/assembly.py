"""The fleet put together as cloud.json says: moto's EC2, the cloud's API server, the cloud's event bus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from localcloud.fleet import groups
from localcloud.fleet.announcements import CloudAnnouncer
from localcloud.fleet.compute import MotoCompute
from localcloud.fleet.fleet import Fleet
from localcloud.fleet.journal import Journal
from localcloud.fleet.registrar import ApiServerRegistrar

DEFAULT_BOOT_SECONDS = 30.0


def assemble(wired: dict[str, Any]) -> Fleet:
    """Build a fleet whose groups react. Nothing runs until `fleet.timers.run` does."""
    kubernetes = wired["kubernetes"]
    region = wired["region"]
    fleet = Fleet(
        account=wired["account"],
        region=region,
        boot_seconds=float(wired.get("boot_seconds", DEFAULT_BOOT_SECONDS)),
        compute=MotoCompute(wired["account"], region),
        registrar=ApiServerRegistrar(
            kubernetes["endpoint"], Path(kubernetes["ca_file"]), kubernetes["admin_token"], region=region
        ),
        announcer=CloudAnnouncer(wired["aws_endpoint"], wired["account"], region),
        journal=Journal(Path(wired["state_dir"])),
    )
    groups.attach(fleet)
    return fleet
