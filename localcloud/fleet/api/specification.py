"""What a request says of a group, read into the group: sizes, places, launch sources, with AWS's refusals.

https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CreateAutoScalingGroup.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.fleet.compute import Compute
from localcloud.fleet.errors import invalid
from localcloud.fleet.sizes import UnknownType, node_size
from localcloud.fleet.state import Group, Hook, Offer, Tag, Template

KEPT = (
    "LaunchTemplate",
    "MixedInstancesPolicy",
    "DefaultCooldown",
    "HealthCheckType",
    "HealthCheckGracePeriod",
    "PlacementGroup",
    "TerminationPolicies",
    "NewInstancesProtectedFromScaleIn",
    "CapacityRebalance",
    "ServiceLinkedRoleARN",
    "MaxInstanceLifetime",
    "Context",
    "DesiredCapacityType",
    "DefaultInstanceWarmup",
    "InstanceMaintenancePolicy",
    "AvailabilityZoneDistribution",
    "AvailabilityZoneImpairmentPolicy",
    "CapacityReservationSpecification",
)
LISTS = ("TargetGroupARNs", "LoadBalancerNames", "TrafficSources")


def kept_settings(request: Mapping[str, Any]) -> dict[str, Any]:
    return {name: request[name] for name in KEPT if name in request}


def check_sizes(minimum: int, maximum: int, desired: int) -> None:
    if minimum > maximum:
        raise invalid(f"Max bound, {maximum}, must be greater than or equal to min bound, {minimum}")
    if not minimum <= desired <= maximum:
        raise invalid(
            f"Desired capacity:{desired} must be between the specified min size:{minimum} and max size:{maximum}"
        )


def read_subnets(request: Mapping[str, Any], compute: Compute) -> dict[str, str]:
    """Zone -> subnet. Subnets win; zones alone mean the default VPC's subnets."""
    identifiers = [one.strip() for one in str(request.get("VPCZoneIdentifier") or "").split(",") if one.strip()]
    zones = list(request.get("AvailabilityZones") or [])
    if identifiers:
        by_zone = {zone: subnet for subnet, zone in compute.subnet_zones(identifiers).items()}
        if zones and set(zones) != set(by_zone):
            raise invalid("The availability zones of the specified subnets and the Auto Scaling group do not match")
        return by_zone
    if not zones:
        raise invalid("At least one Availability Zone or VPC Subnet is required.")
    return compute.default_subnets(zones)


def read_offers(settings: dict[str, Any], compute: Compute) -> tuple[Offer, ...]:
    """What the group may launch, in its order; launch templates in `settings` get both id and name, as AWS shows them.

    Refused where the launch source is missing, where a template does not exist, and (ours) where nobody recorded a
    node of one of the types.
    """
    if policy := settings.get("MixedInstancesPolicy"):
        offers = _mixed_offers(policy["LaunchTemplate"], compute)
    elif reference := settings.get("LaunchTemplate"):
        template = compute.template(reference)
        settings["LaunchTemplate"] = template.reference
        offers = (Offer(template.instance_type, template),)
    else:
        raise invalid(
            "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or "
            "MixedInstancesPolicy parameter."
        )
    for offer in offers:
        _require_recorded(offer.instance_type)
    return offers


def _mixed_offers(launch: dict[str, Any], compute: Compute) -> tuple[Offer, ...]:
    base = compute.template(launch["LaunchTemplateSpecification"])
    launch["LaunchTemplateSpecification"] = base.reference
    overrides = launch.get("Overrides") or []
    if any("InstanceRequirements" in override for override in overrides):
        raise invalid("localcloud: InstanceRequirements are not followed here; name instance types in the overrides")
    weighted = ["WeightedCapacity" in override for override in overrides]
    if any(weighted) and not all(weighted):
        raise invalid("WeightedCapacity must be specified for all instance types or for none of them.")
    if not overrides:
        return (Offer(base.instance_type, base),)
    return tuple(_override_offer(override, base, compute) for override in overrides)


def _override_offer(override: dict[str, Any], base: Template, compute: Compute) -> Offer:
    template = base
    if reference := override.get("LaunchTemplateSpecification"):
        template = compute.template(reference)
        override["LaunchTemplateSpecification"] = template.reference
    instance_type = override.get("InstanceType") or template.instance_type
    return Offer(instance_type, template, int(override.get("WeightedCapacity") or 1))


def _require_recorded(instance_type: str) -> None:
    try:
        node_size(instance_type)
    except UnknownType as unknown:
        raise invalid(f"localcloud: {unknown}") from None


def read_tags(request: Mapping[str, Any]) -> dict[str, Tag]:
    return {
        tag["Key"]: Tag(tag["Key"], tag.get("Value") or "", bool(tag.get("PropagateAtLaunch", False)))
        for tag in request.get("Tags") or []
    }


def read_hook(group: Group, request: Mapping[str, Any]) -> Hook:
    """A hook as PutLifecycleHook states it; members that it leaves out keep what an existing hook has.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html
    """
    name = request["LifecycleHookName"]
    before = group.hooks.get(name)
    transition = request.get("LifecycleTransition") or (before.transition if before else "")
    if not transition:
        raise invalid("LifecycleTransition is required when creating a new lifecycle hook")
    heartbeat = int(request.get("HeartbeatTimeout") or (before.heartbeat_seconds if before else 3600))
    if not 30 <= heartbeat <= 7200:
        raise invalid(f"HeartbeatTimeout must be between 30 and 7200 seconds, not {heartbeat}")
    result = request.get("DefaultResult") or (before.default_result if before else "ABANDON")
    if result not in ("CONTINUE", "ABANDON"):
        raise invalid(f"Valid values for DefaultResult are CONTINUE and ABANDON, not {result}")
    return Hook(
        name=name,
        group_name=group.name,
        transition=transition,
        heartbeat_seconds=heartbeat,
        default_result=result,
        metadata=request.get("NotificationMetadata", before.metadata if before else ""),
        target_arn=request.get("NotificationTargetARN", before.target_arn if before else ""),
        role_arn=request.get("RoleARN", before.role_arn if before else ""),
    )
