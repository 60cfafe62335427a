"""Auto Scaling groups, their lifecycle hooks and launch templates of a stack, made in the fleet by its AWS API.

Different upstream: ministack has these types, but in an Auto Scaling service of its own that launches nothing. Here a
pool of `create:` becomes a group where groups of the local cloud live, through the calls that CloudFormation makes.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-autoscaling-autoscalinggroup.html
"""

from __future__ import annotations

from typing import Any

import boto3
from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.model import ListShape, MapShape, Shape, StructureShape

from localcloud.aws.handlers import Change, Properties, Provisioned, handler
from localcloud.aws.upstream import replace
from localcloud.aws.wiring import Wiring

# Members that UpdateAutoScalingGroup does not take.
ONLY_AT_CREATION = ("LifecycleHookSpecificationList", "LoadBalancerNames", "TargetGroupARNs", "InstanceId")
# Properties that are calls of their own or named otherwise in the API.
NOT_IN_THE_CALL = ("Tags", "MetricsCollection", "NotificationConfigurations", "VPCZoneIdentifier", "Cooldown")


def install(wiring: Wiring) -> None:
    """Put our handlers in the place of ministack's for the three types, off its event loop."""
    from ministack.services.cloudformation import provisioners, stacks

    fleet = Fleet(wiring)
    ours = {
        "AWS::AutoScaling::AutoScalingGroup": handler(
            create=fleet.create_group, update=fleet.update_group, delete=fleet.delete_group
        ),
        "AWS::AutoScaling::LifecycleHook": handler(
            create=fleet.put_hook, update=fleet.put_hook, delete=fleet.delete_hook
        ),
        "AWS::EC2::LaunchTemplate": handler(
            create=fleet.create_template, update=fleet.update_template, delete=fleet.delete_template
        ),
    }
    provisioners._RESOURCE_HANDLERS.update(ours)

    def on_worker_thread(resource_type: str) -> bool:
        return resource_type in ours or bool(upstream_choice(resource_type))

    upstream_choice = replace(stacks, "_runs_on_worker_thread", "resource_type", on_worker_thread)


def as_request(shape: Shape, value: Any, where: str) -> Any:
    """A template's value as the API wants it: templates may write numbers and booleans as text.

    ValueError naming the property where the API has no such member.
    """
    if isinstance(shape, StructureShape):
        unknown = set(value) - set(shape.members)
        if unknown:
            raise ValueError(f"{where}: the API has no {', '.join(sorted(unknown))}")
        return {name: as_request(shape.members[name], inner, f"{where}.{name}") for name, inner in value.items()}
    if isinstance(shape, ListShape):
        return [as_request(shape.member, inner, where) for inner in value]
    if isinstance(shape, MapShape):
        return dict(value)
    if shape.type_name == "boolean":
        return str(value).lower() == "true"
    if shape.type_name in ("integer", "long"):
        return int(value)
    return str(value)


def group_request(properties: Properties) -> dict[str, Any]:
    """CreateAutoScalingGroup's and UpdateAutoScalingGroup's members, names as the API has them."""
    request = {name: value for name, value in properties.items() if name not in NOT_IN_THE_CALL}
    if "VPCZoneIdentifier" in properties:
        request["VPCZoneIdentifier"] = ",".join(properties["VPCZoneIdentifier"])
    if "Cooldown" in properties:
        request["DefaultCooldown"] = properties["Cooldown"]
    return request


def group_tags(name: str, properties: Properties) -> list[dict[str, Any]]:
    return [
        {
            "ResourceId": name,
            "ResourceType": "auto-scaling-group",
            "Key": tag["Key"],
            "Value": str(tag["Value"]),
            "PropagateAtLaunch": str(tag.get("PropagateAtLaunch", False)).lower() == "true",
        }
        for tag in properties.get("Tags", [])
        if not tag["Key"].startswith("aws:")
    ]


class Fleet:
    """The handlers of the three types, over clients of the fleet's two APIs."""

    def __init__(self, wiring: Wiring) -> None:
        session = boto3.Session(
            region_name=wiring.region, aws_access_key_id=wiring.account, aws_secret_access_key=wiring.account
        )
        # Operations and their shapes are looked up by name here, which typed clients cannot express.
        self.groups: Any = session.client("autoscaling", endpoint_url=wiring.fleet_endpoint)
        self.ec2: Any = session.client("ec2", endpoint_url=wiring.fleet_endpoint)

    def call(self, client: Any, operation: str, members: dict[str, Any]) -> Any:
        shape = client.meta.service_model.operation_model(operation).input_shape
        return getattr(client, xform_name(operation))(**as_request(shape, members, operation))

    def create_group(self, change: Change) -> Provisioned:
        name = change.name("AutoScalingGroupName")
        tags = group_tags(name, change.properties)
        members = {**group_request(change.properties), "AutoScalingGroupName": name, "Tags": tags}
        self.call(self.groups, "CreateAutoScalingGroup", members)
        return name, self.group_attributes(name)

    def update_group(self, change: Change) -> Provisioned:
        """In place; what the template does not say stays, for the desired capacity is not the stack's."""
        name = change.physical_id
        if change.name("AutoScalingGroupName") != name:
            created = self.create_group(change)
            self.delete_group(change)
            return created
        members = {key: value for key, value in group_request(change.properties).items() if key not in ONLY_AT_CREATION}
        self.call(self.groups, "UpdateAutoScalingGroup", {**members, "AutoScalingGroupName": name})
        tags = group_tags(name, change.properties)
        kept = {tag["Key"] for tag in tags}
        if dropped := [tag for tag in group_tags(name, change.old) if tag["Key"] not in kept]:
            self.groups.delete_tags(Tags=dropped)
        if tags:
            self.groups.create_or_update_tags(Tags=tags)
        return name, self.group_attributes(name)

    def described(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.groups.describe_auto_scaling_groups(AutoScalingGroupNames=[name])[
            "AutoScalingGroups"
        ]
        return found

    def group_attributes(self, name: str) -> dict[str, Any]:
        arn = self.described(name)[0]["AutoScalingGroupARN"]
        return {"AutoScalingGroupARN": arn, "Arn": arn}

    def delete_group(self, change: Change) -> None:
        if self.described(change.physical_id):
            self.groups.delete_auto_scaling_group(AutoScalingGroupName=change.physical_id, ForceDelete=True)

    def put_hook(self, change: Change) -> Provisioned:
        name = change.physical_id or change.name("LifecycleHookName")
        self.call(self.groups, "PutLifecycleHook", {**change.properties, "LifecycleHookName": name})
        return name, {"LifecycleHookName": name}

    def delete_hook(self, change: Change) -> None:
        group = change.properties["AutoScalingGroupName"]
        if self.described(group):
            self.groups.delete_lifecycle_hook(LifecycleHookName=change.physical_id, AutoScalingGroupName=group)

    def create_template(self, change: Change) -> Provisioned:
        members = {**change.properties, "LaunchTemplateName": change.name("LaunchTemplateName")}
        created = self.call(self.ec2, "CreateLaunchTemplate", members)
        return template_attributes(created["LaunchTemplate"])

    def update_template(self, change: Change) -> Provisioned:
        if change.properties.get("LaunchTemplateName") != change.old.get("LaunchTemplateName"):
            created = self.create_template(change)
            self.delete_template(change)
            return created
        identity, data = {"LaunchTemplateId": change.physical_id}, change.properties["LaunchTemplateData"]
        if data != change.old["LaunchTemplateData"]:
            self.call(self.ec2, "CreateLaunchTemplateVersion", {**identity, "LaunchTemplateData": data})
        found = self.ec2.describe_launch_templates(LaunchTemplateIds=[change.physical_id])["LaunchTemplates"]
        return template_attributes(found[0])

    def delete_template(self, change: Change) -> None:
        try:
            self.ec2.delete_launch_template(LaunchTemplateId=change.physical_id)
        except ClientError as refused:
            if "NotFound" not in refused.response["Error"]["Code"]:
                raise


def template_attributes(template: dict[str, Any]) -> Provisioned:
    return template["LaunchTemplateId"], {
        "LaunchTemplateId": template["LaunchTemplateId"],
        "LaunchTemplateName": template["LaunchTemplateName"],
        "DefaultVersionNumber": str(template["DefaultVersionNumber"]),
        "LatestVersionNumber": str(template["LatestVersionNumber"]),
    }
