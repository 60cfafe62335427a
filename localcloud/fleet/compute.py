"""EC2 as the fleet uses it: moto's backend in this process, with the instance states that moto skips."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Protocol

from localcloud.fleet.errors import invalid
from localcloud.fleet.state import Template

STATE_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}


class Compute(Protocol):
    """EC2 in one region."""

    def template(self, reference: Mapping[str, str]) -> Template: ...
    def subnet_zones(self, subnet_ids: list[str]) -> dict[str, str]: ...
    def default_subnets(self, zones: list[str]) -> dict[str, str]: ...
    def launch(
        self, instance_type: str, subnet_id: str, template: Template, tags: Mapping[str, str]
    ) -> tuple[str, str]: ...
    def state(self, instance_id: str) -> str: ...
    def set_state(self, instance_id: str, state: str) -> None: ...


class MotoCompute:
    """EC2 on moto's backend. https://docs.getmoto.org/en/latest/docs/services/ec2.html"""

    def __init__(self, account: str, region: str) -> None:
        from moto.backends import get_backend

        self._backend = get_backend("ec2")[account][region]
        self._region = region

    def template(self, reference: Mapping[str, str]) -> Template:
        """The version of a launch template that a group names. Refused as Auto Scaling refuses an unknown one."""
        found = self._find_template(reference)
        version = reference.get("Version") or "$Default"
        number = {"$Latest": found.latest_version_number, "$Default": found.default_version_number}.get(
            version, version
        )
        try:
            data: dict[str, Any] = found.get_version(int(number)).data
        except (IndexError, ValueError):
            raise invalid(
                "You must use a valid fully-formed launch template. "
                f"Could not find launch template version '{version}' for the launch template {found.id}."
            ) from None
        interfaces = data.get("NetworkInterfaces") or data.get("NetworkInterface") or []
        groups = data.get("SecurityGroupIds") or (interfaces[0].get("Groups") if interfaces else None) or []
        return Template(
            template_id=found.id,
            name=found.name,
            version=version,
            number=str(number),
            image_id=data.get("ImageId", ""),
            instance_type=data.get("InstanceType", ""),
            user_data=str(data.get("UserData", "")),
            spot=(data.get("InstanceMarketOptions") or {}).get("MarketType") == "spot",
            security_group_ids=tuple(groups),
            tags=_instance_tags(data),
        )

    def _find_template(self, reference: Mapping[str, str]) -> Any:
        for template in self._backend.launch_templates.values():
            if reference.get("LaunchTemplateId") == template.id or reference.get("LaunchTemplateName") == template.name:
                return template
        named = reference.get("LaunchTemplateId") or reference.get("LaunchTemplateName")
        kind = "ID" if reference.get("LaunchTemplateId") else "name"
        raise invalid(
            "You must use a valid fully-formed launch template. "
            f"The specified launch template, with template {kind} {named}, does not exist."
        )

    def subnet_zones(self, subnet_ids: list[str]) -> dict[str, str]:
        zones = {}
        for subnet_id in subnet_ids:
            try:
                zones[subnet_id] = str(self._backend.get_subnet(subnet_id).availability_zone)
            except Exception:  # noqa: BLE001 - moto raises a class of its own for each kind of id
                raise invalid(f"The subnet ID '{subnet_id}' does not exist") from None
        return zones

    def default_subnets(self, zones: list[str]) -> dict[str, str]:
        by_zone = {
            s.availability_zone: s.id for s in self._backend.describe_subnets() if s.default_for_az in (True, "true")
        }
        missing = [zone for zone in zones if zone not in by_zone]
        if missing:
            raise invalid(f"Invalid Availability Zones {missing}")
        return {zone: by_zone[zone] for zone in zones}

    def launch(
        self, instance_type: str, subnet_id: str, template: Template, tags: Mapping[str, str]
    ) -> tuple[str, str]:
        """Start an instance in state pending; return its id and private address.

        Never an address that an ended instance had: its node's name would come back while that node's pods are there.
        """
        self._backend.get_subnet(subnet_id)._unused_ips.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # moto warns of images that it does not know
            reservation = self._backend.run_instances(
                template.image_id,
                1,
                None,  # what the user data tells the kubelet, the fleet reads itself
                [],
                instance_type=instance_type,
                is_instance_type_default=False,
                subnet_id=subnet_id,
                region_name=self._region,
                security_group_ids=[
                    one for one in template.security_group_ids if self._backend.get_security_group_from_id(one)
                ],
                tags={"instance": {**template.tags, **tags}},
                associate_public_ip=False,
                instance_market_options={"MarketType": "spot"} if template.spot else {},
            )
        instance = reservation.instances[0]
        self._set(instance, "pending")
        return str(instance.id), str(instance.private_ip)

    def state(self, instance_id: str) -> str:
        instance = self._find(instance_id)
        return "terminated" if instance is None else str(instance.state)

    def set_state(self, instance_id: str, state: str) -> None:
        instance = self._find(instance_id)
        if instance is None:
            return
        if state == "terminated":
            instance.terminate()
        self._set(instance, state)

    def _find(self, instance_id: str) -> Any:
        return self._backend.get_instance_by_id(instance_id)

    @staticmethod
    def _set(instance: Any, state: str) -> None:
        instance._state.name = state
        instance._state.code = STATE_CODES[state]


def _instance_tags(data: Mapping[str, Any]) -> dict[str, str]:
    specifications = data.get("TagSpecifications") or data.get("TagSpecification") or []
    tags: dict[str, str] = {}
    for specification in specifications:
        if specification.get("ResourceType") == "instance":
            for tag in specification.get("Tags") or specification.get("Tag") or []:
                tags[tag["Key"]] = tag["Value"]
    return tags
