"""Pools that Firstbell makes (`create:`): launch templates and an Auto Scaling group each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Fn, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from infra.acknowledged import acknowledge
from infra.az_rebalance import AzRebalance
from infra.node_role import NodeRole
from infra.operator_file import group_name, parse_taint
from infra.user_data import user_data

if TYPE_CHECKING:
    from infra.operator_file import ClusterEntry, PoolEntry
    from infra.operator_file.pools import Create

ROOT_DEVICE = "/dev/xvda"
HEARTBEAT_SECONDS = 300
NODE_TEMPLATE = "k8s.io/cluster-autoscaler/node-template"


class Pools(Construct):
    """The groups of a cluster, with what they share: node role and suspended AZRebalance."""

    def __init__(self, scope: Construct, construct_id: str, *, cluster: ClusterEntry) -> None:
        super().__init__(scope, construct_id)
        created = [
            (pool, pool.create, name) for pool in cluster.pools if pool.create and (name := group_name(cluster, pool))
        ]
        if not created:
            return
        nodes = NodeRole(self, "Nodes", cluster=cluster.name)
        calm = AzRebalance(
            self, "AzRebalance", cluster=cluster.name, region=cluster.region, groups=[name for *_, name in created]
        )
        for pool, create, name in created:
            made = CreatedPool(
                self, pool.name, cluster=cluster, pool=pool, create=create, name=name, profile=nodes.profile
            )
            calm.suspend(made.group, name)


class CreatedPool(Construct):
    """One group. It has no DesiredCapacity: each deployment would throw running nodes away or buy them again."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: ClusterEntry,
        pool: PoolEntry,
        create: Create,
        name: str,
        profile: iam.CfnInstanceProfile,
    ) -> None:
        super().__init__(scope, construct_id)
        self._cluster, self._pool, self._create, self._name, self._profile = cluster, pool, create, name, profile
        weights = sorted({instance.weight for instance in create.instances})
        self._templates = {weight: self._template(weight) for weight in weights}
        self.group = autoscaling.CfnAutoScalingGroup(
            self,
            "Group",
            auto_scaling_group_name=name,
            min_size=str(create.min_size),
            max_size=str(create.max_size),
            vpc_zone_identifier=create.subnets,
            mixed_instances_policy=self._policy(),
            metrics_collection=[
                autoscaling.CfnAutoScalingGroup.MetricsCollectionProperty(
                    granularity="1Minute", metrics=["GroupInServiceInstances"]
                )
            ],
            tags=self._tags(),
        )
        self._answer_terminations()
        acknowledge(self.group, "AS3", "Failed launches reach the tick through EventBridge; the rest is in metrics.")
        acknowledge(
            self.group, "EC26", "The launch templates encrypt their volumes; the rule cannot follow a reference."
        )

    def _answer_terminations(self) -> None:
        """A member that Auto Scaling ends waits until its node is drained; without us, for one heartbeat timeout."""
        autoscaling.CfnLifecycleHook(
            self,
            "Drain",
            auto_scaling_group_name=self.group.ref,
            lifecycle_hook_name=self._pool.interruption.hook,
            lifecycle_transition="autoscaling:EC2_INSTANCE_TERMINATING",
            heartbeat_timeout=HEARTBEAT_SECONDS,
            default_result="CONTINUE",
        )

    @property
    def weighted(self) -> bool:
        return list(self._templates) != [1]

    def _template(self, weight: int) -> ec2.CfnLaunchTemplate:
        """A template for each weight, because volumes are as large as the number of pods that the instance takes."""
        volume = self._create.volume
        return ec2.CfnLaunchTemplate(
            self,
            f"Template{weight}",
            launch_template_data=ec2.CfnLaunchTemplate.LaunchTemplateDataProperty(
                image_id=self._image_id(),
                iam_instance_profile=ec2.CfnLaunchTemplate.IamInstanceProfileProperty(arn=self._profile.attr_arn),
                security_group_ids=self._create.security_groups,
                user_data=Fn.base64(user_data(self._cluster, self._pool)),
                metadata_options=ec2.CfnLaunchTemplate.MetadataOptionsProperty(
                    http_tokens="required", http_put_response_hop_limit=1
                ),
                block_device_mappings=[
                    ec2.CfnLaunchTemplate.BlockDeviceMappingProperty(
                        device_name=ROOT_DEVICE,
                        ebs=ec2.CfnLaunchTemplate.EbsProperty(
                            encrypted=True,
                            volume_type="gp3",
                            volume_size=volume.gib_per_unit * weight,
                            iops=volume.iops_per_unit * weight,
                        ),
                    )
                ],
                tag_specifications=[
                    ec2.CfnLaunchTemplate.TagSpecificationProperty(
                        resource_type="volume", tags=[{"key": "Name", "value": self._name}]
                    )
                ],
            ),
        )

    def _image_id(self) -> str:
        """A parameter is looked up by a deployment, not by a launch: a class must not be the first on an image."""
        if self._create.ami.startswith("ami-"):
            return self._create.ami
        return ssm.StringParameter.value_for_typed_string_parameter_v2(
            Stack.of(self), self._create.ami, ssm.ParameterValueType.AWS_EC2_IMAGE_ID
        )

    def _policy(self) -> autoscaling.CfnAutoScalingGroup.MixedInstancesPolicyProperty:
        group = autoscaling.CfnAutoScalingGroup
        specifications = {
            weight: group.LaunchTemplateSpecificationProperty(
                launch_template_id=template.ref, version=template.attr_latest_version_number
            )
            for weight, template in self._templates.items()
        }
        default = specifications[min(specifications)]
        return group.MixedInstancesPolicyProperty(
            instances_distribution=group.InstancesDistributionProperty(
                on_demand_allocation_strategy="prioritized",
                on_demand_base_capacity=self._create.on_demand_base,
                on_demand_percentage_above_base_capacity=0 if self._pool.spot else 100,
                spot_allocation_strategy="price-capacity-optimized" if self._pool.spot else None,
            ),
            launch_template=group.LaunchTemplateProperty(
                launch_template_specification=default,
                overrides=[
                    group.LaunchTemplateOverridesProperty(
                        instance_type=instance.type,
                        weighted_capacity=str(instance.weight) if self.weighted else None,
                        launch_template_specification=specifications[instance.weight] if self.weighted else None,
                    )
                    for instance in self._create.instances
                ],
            ),
        )

    def _tags(self) -> list[autoscaling.CfnAutoScalingGroup.TagPropertyProperty]:
        """What kubelet's cloud provider, people and cluster-autoscaler look for.

        A weighted group gets no discovery tag: cluster-autoscaler would take its units for instances.
        """
        cluster = self._cluster.name
        on_instances = {
            "Name": self._name,
            f"kubernetes.io/cluster/{cluster}": "owned",
            "KubernetesCluster": cluster,
        }
        taints = [parse_taint(text) for text in self._pool.taints]
        on_group = {
            **{f"{NODE_TEMPLATE}/label/{key}": value for key, value in self._pool.labels.items()},
            **{f"{NODE_TEMPLATE}/taint/{taint['key']}": f"{taint['value']}:{taint['effect']}" for taint in taints},
        }
        if not self.weighted:
            on_group |= {"k8s.io/cluster-autoscaler/enabled": "true", f"k8s.io/cluster-autoscaler/{cluster}": "owned"}
        return [
            autoscaling.CfnAutoScalingGroup.TagPropertyProperty(key=key, value=value, propagate_at_launch=propagated)
            for tags, propagated in ((on_instances, True), (on_group, False))
            for key, value in tags.items()
        ]
