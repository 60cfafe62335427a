"""Groups that the stack makes."""

from __future__ import annotations

from typing import Any

import yaml

from tests.infra import documents
from tests.infra.stacks import Synthesized, synthesize


def stack_of(*pools: dict[str, Any]) -> Synthesized:
    return synthesize(documents.text(documents.cluster(pools=list(pools), api_server=documents.API_SERVER)))


def group_of(stack: Synthesized) -> dict[str, Any]:
    return stack.one("AWS::AutoScaling::AutoScalingGroup")


def node_config(stack: Synthesized) -> dict[str, Any]:
    template = stack.one("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    document: str = template["UserData"]["Fn::Base64"]
    config: dict[str, Any] = yaml.safe_load(document.split("---\n", 1)[1].split("--firstbell--", maxsplit=1)[0])
    return config


def tags(group: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    return {tag["Key"]: (tag["Value"], tag["PropagateAtLaunch"]) for tag in group["Tags"]}


def test_a_node_registers_with_the_labels_and_taints_of_its_pool() -> None:
    stack = stack_of(
        documents.created(
            labels={"hub.jupyter.org/pool-name": "users"}, taints=["hub.jupyter.org/dedicated=user:NoSchedule"]
        )
    )
    spec = node_config(stack)["spec"]
    assert spec["cluster"] == {
        "name": "hub",
        "apiServerEndpoint": "https://example.test",
        "certificateAuthority": "Y2E=",
        "cidr": "10.100.0.0/16",
    }
    assert spec["kubelet"] == {
        "config": {
            "registerWithTaints": [{"key": "hub.jupyter.org/dedicated", "value": "user", "effect": "NoSchedule"}]
        },
        "flags": ["--node-labels=hub.jupyter.org/pool-name=users"],
    }


def test_max_pods_is_left_to_nodeadm_where_its_rule_holds() -> None:
    assert node_config(stack_of(documents.created()))["spec"]["kubelet"] == {}


def test_withheld_interfaces_change_nodeadms_rule_as_they_change_density() -> None:
    """case 45: custom networking and reserved interfaces give no pod an address."""
    stack = stack_of(documents.created(networking={"custom_networking": True, "reserved_enis": 2}))
    expression = node_config(stack)["spec"]["kubelet"]["maxPodsExpression"]
    # m6g.xlarge: 4 interfaces of 15 addresses
    assert eval(expression, {}, {"default_enis": 4, "ips_per_eni": 15}) == 16  # noqa: S307  # CEL and Python agree here


def test_the_operators_max_pods_is_kubelets() -> None:
    stack = stack_of(documents.created(networking={"prefix_delegation": True, "max_pods": 110}))
    assert node_config(stack)["spec"]["kubelet"] == {"config": {"maxPods": 110}}


def test_volumes_are_encrypted_and_grow_with_the_weight_of_the_instance() -> None:
    """case 40: one launch template a weight."""
    stack = stack_of(
        documents.created(
            create={
                "instances": [{"type": "m5.xlarge", "weight": 1}, {"type": "m5.2xlarge", "weight": 2}],
                "volume": {"gib_per_unit": 60, "iops_per_unit": 4000},
            }
        )
    )
    volumes = [
        template["LaunchTemplateData"]["BlockDeviceMappings"][0]["Ebs"]
        for template in stack.of_type("AWS::EC2::LaunchTemplate").values()
    ]
    assert [(v["VolumeSize"], v["Iops"], v["Encrypted"]) for v in volumes] == [(60, 4000, True), (120, 8000, True)]
    overrides = group_of(stack)["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]
    assert [(o["InstanceType"], o["WeightedCapacity"]) for o in overrides] == [("m5.xlarge", "1"), ("m5.2xlarge", "2")]
    templates = [o["LaunchTemplateSpecification"]["LaunchTemplateId"]["Ref"] for o in overrides]
    assert templates == list(stack.of_type("AWS::EC2::LaunchTemplate"))


def test_cluster_autoscaler_finds_an_unweighted_group_and_what_its_nodes_look_like() -> None:
    group = group_of(stack_of(documents.created(labels={"team": "a"}, taints=["dedicated=user:NoSchedule"])))
    prefix = "k8s.io/cluster-autoscaler"
    assert tags(group) == {
        "Name": ("firstbell-hub-users", True),
        "kubernetes.io/cluster/hub": ("owned", True),
        "KubernetesCluster": ("hub", True),
        f"{prefix}/enabled": ("true", False),
        f"{prefix}/hub": ("owned", False),
        f"{prefix}/node-template/label/team": ("a", False),
        f"{prefix}/node-template/taint/dedicated": ("user:NoSchedule", False),
    }


def test_cluster_autoscaler_does_not_find_a_weighted_group() -> None:
    """case 40: it would take units for instances."""
    group = group_of(stack_of(documents.created(create={"instances": [{"type": "m5.2xlarge", "weight": 2}]})))
    assert "k8s.io/cluster-autoscaler/enabled" not in tags(group)
    assert "k8s.io/cluster-autoscaler/hub" not in tags(group)


def test_a_spot_pool_buys_where_capacity_is_and_keeps_its_on_demand_base() -> None:
    group = group_of(stack_of(documents.created(spot=True, create={"on_demand_base": 2})))
    distribution = group["MixedInstancesPolicy"]["InstancesDistribution"]
    assert distribution["SpotAllocationStrategy"] == "price-capacity-optimized"
    assert distribution["OnDemandPercentageAboveBaseCapacity"] == 0
    assert distribution["OnDemandBaseCapacity"] == 2


def test_another_pool_is_on_demand_in_the_operators_order() -> None:
    distribution = group_of(stack_of(documents.created()))["MixedInstancesPolicy"]["InstancesDistribution"]
    assert distribution["OnDemandPercentageAboveBaseCapacity"] == 100
    assert distribution["OnDemandAllocationStrategy"] == "prioritized"


def test_zones_are_not_rebalanced_once_the_group_is_there() -> None:
    stack = stack_of(documents.created())
    [(logical_id, properties)] = stack.of_type("Custom::SuspendAzRebalance").items()
    assert properties["AutoScalingGroupName"] == "firstbell-hub-users"
    group = stack.logical_id("AWS::AutoScaling::AutoScalingGroup")
    assert group in stack.template["Resources"][logical_id]["DependsOn"]


def test_nodes_get_a_role_of_their_own_that_kubelets_may_join_with() -> None:
    stack = stack_of(documents.created())
    entry = stack.one("AWS::EKS::AccessEntry", Type="EC2_LINUX")
    profile = stack.one("AWS::IAM::InstanceProfile")
    assert profile["Roles"] == [{"Ref": entry["PrincipalArn"]["Fn::GetAtt"][0]}]


def test_nodes_keep_their_credentials_from_pods() -> None:
    template = stack_of(documents.created()).one("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    assert template["MetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}


def test_an_image_parameter_is_looked_up_by_the_deployment() -> None:
    parameter = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"
    stack = stack_of(documents.created(create={"ami": parameter}))
    [image] = [name for name, entry in stack.template["Parameters"].items() if entry.get("Default") == parameter]
    assert stack.one("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["ImageId"] == {"Ref": image}
    assert stack.template["Parameters"][image]["Type"] == "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>"


def test_nothing_is_made_for_groups_that_the_operator_has() -> None:
    stack = stack_of(documents.pool())
    assert not stack.of_type("AWS::AutoScaling::AutoScalingGroup")
    assert not stack.of_type("AWS::IAM::InstanceProfile")
    assert not stack.of_type("Custom::SuspendAzRebalance")
