"""The instance type that a launch template says, for groups whose own policy names none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firstbell.cloud.refusals import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from firstbell.cloud.session import Clients

MOVING_SECONDS = 300.0
"""How long `$Latest` and `$Default` are taken to mean the same version. A numbered version never changes."""


class LaunchTemplates:
    def __init__(self, clients: Clients, clock: Callable[[], float]) -> None:
        self._clients = clients
        self._clock = clock
        self._types: dict[tuple[str, str], tuple[str, float]] = {}

    def instance_type(self, specification: Mapping[str, Any]) -> str:
        """The type of a LaunchTemplateSpecification's version; empty where it leaves the type open."""
        key = (
            specification.get("LaunchTemplateId") or specification.get("LaunchTemplateName") or "",
            specification.get("Version") or "$Default",
        )
        found, read_at = self._types.get(key, ("", None))
        if read_at is None or (key[1].startswith("$") and self._clock() - read_at >= MOVING_SECONDS):
            found = self._read(specification, key[1])
            self._types[key] = (found, self._clock())
        return found

    def _read(self, specification: Mapping[str, Any], version: str) -> str:
        with translated("ec2:DescribeLaunchTemplateVersions"):
            if "LaunchTemplateId" in specification:
                answer = self._clients.ec2.describe_launch_template_versions(
                    LaunchTemplateId=specification["LaunchTemplateId"], Versions=[version]
                )
            else:
                answer = self._clients.ec2.describe_launch_template_versions(
                    LaunchTemplateName=specification["LaunchTemplateName"], Versions=[version]
                )
        versions = answer["LaunchTemplateVersions"]
        return versions[0]["LaunchTemplateData"].get("InstanceType", "") if versions else ""
