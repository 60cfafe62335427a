"""What the functions may do on AWS and in Kubernetes, and what the checkers of others say about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aws_cdk import Validations
from aws_cdk.aws_sqs import Queue
from cdk_nag import AwsSolutionsChecks
from cfnlint import ManualArgs
from cfnlint.api import lint

from tests.infra import documents
from tests.infra.stacks import ROOT, Synthesized, add_stacks, new_app, synthesize

WITHOUT_RESOURCES = {
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeInstanceRefreshes",
    "autoscaling:DescribeLifecycleHooks",
    "autoscaling:DescribeScalingActivities",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeLaunchTemplateVersions",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
}
"""Actions for which the Service Authorization Reference lists no resource type."""

EVERYTHING = documents.text(
    documents.cluster(
        pools=[
            documents.created(),
            documents.pool("given"),
            {**documents.pool("managed"), "asg": None, "nodegroup": "workers"},
            documents.created("spot", spot=True, create={"instances": [{"type": "m5.large", "weight": 2}]}),
        ],
        api_server=documents.API_SERVER,
        portals=[documents.portal()],
        drill_sources=["arn:aws:iam::111122223333:role/operator"],
        notify={"email": "ops@example.edu"},
        private_endpoint={"vpc": "vpc-0a1b2c3d", "subnets": ["subnet-0a1b2c3d"], "security_groups": ["sg-0a1b2c3d"]},
    ),
    documents.cluster("hub-eu", "eu-west-1"),
)
"""A file that uses all there is."""


def allowed(stack: Synthesized) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(action, resource, statement) of every identity policy."""
    for policy in stack.of_type("AWS::IAM::Policy").values():
        for statement in policy["PolicyDocument"]["Statement"]:
            actions, resources = statement["Action"], statement["Resource"]
            for action in actions if isinstance(actions, list) else [actions]:
                for resource in resources if isinstance(resources, list) else [resources]:
                    yield action, resource if isinstance(resource, str) else json.dumps(resource), statement


def test_no_action_is_allowed_by_a_pattern(shipped: Synthesized) -> None:
    assert not [action for action, _, _ in allowed(shipped) if "*" in action]


def test_every_resource_is_named_where_aws_has_one(shipped: Synthesized) -> None:
    assert {action for action, resource, _ in allowed(shipped) if resource == "*"} == WITHOUT_RESOURCES


def test_only_the_pools_groups_are_changed(shipped: Synthesized) -> None:
    changed = {
        resource.rsplit("/", 1)[1].rstrip('"]}')
        for action, resource, _ in allowed(shipped)
        if action == "autoscaling:SetDesiredCapacity"
    }
    assert changed == {
        "firstbell-hub-notebook-m5-xlarge",
        "firstbell-hub-notebook-m5-2xlarge",
        "firstbell-hub-dask-worker",
    }


def test_a_managed_node_groups_group_is_known_by_the_tags_of_eks() -> None:
    stack = synthesize(
        documents.text(
            documents.cluster(default_pool="m", pools=[{**documents.pool("m"), "asg": None, "nodegroup": "workers"}])
        )
    )
    changes = [s for action, _, s in allowed(stack) if action == "autoscaling:SetDesiredCapacity"]
    assert [s["Condition"] for s in changes] == [
        {
            "StringEquals": {
                "aws:ResourceTag/eks:cluster-name": "hub",
                "aws:ResourceTag/eks:nodegroup-name": ["workers"],
            }
        }
    ] * len(changes)


def test_no_role_of_a_function_has_a_managed_policy(shipped: Synthesized) -> None:
    managed = [role for role in shipped.of_type("AWS::IAM::Role").values() if "ManagedPolicyArns" in role]
    assert [role["Description"] for role in managed] == ["Firstbell: nodes of hub"]


def test_cdk_nag_finds_nothing_that_is_not_acknowledged_with_a_reason(tmp_path: Path) -> None:
    app = new_app(tmp_path)
    add_stacks(app, EVERYTHING)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()  # raises on a finding


def test_cdk_nag_would_have_found_something(tmp_path: Path) -> None:
    app = new_app(tmp_path)
    [stack] = add_stacks(app, documents.text())
    Queue(stack, "Careless")
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with pytest.raises(RuntimeError, match="SQS4"):
        app.synth()


def test_nothing_is_acknowledged_for_a_whole_stack(tmp_path: Path) -> None:
    app = new_app(tmp_path)
    add_stacks(app, EVERYTHING)
    key = Validations.ACKNOWLEDGED_RULES_METADATA_KEY
    for construct in [app, *app.node.children]:
        assert not [entry for entry in construct.node.metadata if entry.type == key]


@pytest.mark.parametrize("cluster", ["hub", "hub-eu"])
def test_cfn_lint_has_nothing_to_say(cluster: str) -> None:
    template = json.dumps(synthesize(EVERYTHING, cluster).template)
    region = "us-west-2" if cluster == "hub" else "eu-west-1"
    # W3005: a DependsOn beside a GetAtt of the same resource is the CDK's own, and harmless.
    assert lint(template, config=ManualArgs(regions=[region], ignore_checks=["W3005"])) == []


def kubernetes_roles() -> dict[str, set[str]]:
    """Group -> `verb resource.group` of the ClusterRole that it is bound to."""
    found = list(yaml.safe_load_all((ROOT / "infra" / "rbac.yaml").read_text(encoding="utf-8")))
    rules = {entry["metadata"]["name"]: entry["rules"] for entry in found if entry["kind"] == "ClusterRole"}
    return {
        binding["subjects"][0]["name"]: {
            f"{verb} {resource}{group and '.' + group}"
            for rule in rules[binding["roleRef"]["name"]]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        for binding in found
        if binding["kind"] == "ClusterRoleBinding"
    }


def test_every_access_entrys_group_is_bound_to_a_role_in_the_cluster(shipped: Synthesized) -> None:
    groups = {
        group
        for entry in shipped.of_type("AWS::EKS::AccessEntry").values()
        for group in entry.get("KubernetesGroups", [])
    }
    assert groups == set(kubernetes_roles())


def test_prescale_reads_the_cluster_and_writes_nothing_but_nodes_that_idle_has_cordoned() -> None:
    assert kubernetes_roles()["firstbell:prescale"] == {
        "list nodes",
        "get nodes",
        "patch nodes",
        "list pods",
        "list persistentvolumeclaims",
        "list persistentvolumes",
        "list daemonsets.apps",
        "list csinodes.storage.k8s.io",
    }


def test_tick_also_reads_when_images_were_pulled() -> None:
    roles = kubernetes_roles()
    assert roles["firstbell:tick"] - roles["firstbell:prescale"] == {"list events"}


def test_idle_also_moves_system_pods_as_far_as_their_budgets_let_it_and_deletes_none() -> None:
    roles = kubernetes_roles()
    assert roles["firstbell:idle"] - roles["firstbell:prescale"] == {
        "create pods/eviction",
        "list poddisruptionbudgets.policy",
    }


def test_nothing_that_holds_secrets_may_be_read() -> None:
    rights = [right for rights in kubernetes_roles().values() for right in rights]
    assert not [right for right in rights if "secrets" in right or "*" in right]
