"""A function reaches the cluster here as it does on EKS: by a presigned STS call, its role and the role's access
entry."""

from __future__ import annotations

import base64
import json
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.credentials import Credentials
from botocore.signers import RequestSigner

from localcloud.cloud import REGION, LocalCloud
from tests.e2e.cluster_api import NODES, ClusterApi

ANYONE_MAY_ASSUME = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}],
}


def client(cloud: LocalCloud, service: str) -> Any:
    return boto3.client(
        service,  # type: ignore[call-overload]  # one helper for every service
        endpoint_url=cloud.aws_endpoint,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


@pytest.fixture
def role_arn(cluster_cloud: LocalCloud) -> str:
    """A role of the test's own."""
    role = client(cluster_cloud, "iam").create_role(
        RoleName=f"role-{uuid4().hex[:8]}", AssumeRolePolicyDocument=json.dumps(ANYONE_MAY_ASSUME)
    )
    arn: str = role["Role"]["Arn"]
    return arn


def eks_token(cloud: LocalCloud, role_arn: str) -> str:
    """What `aws eks get-token` would print for a session of the role."""
    assumed = client(cloud, "sts").assume_role(RoleArn=role_arn, RoleSessionName="prescale")["Credentials"]
    credentials = Credentials(assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"])
    session = boto3.Session(region_name=REGION)
    signer = RequestSigner(
        session.client("sts").meta.service_model.service_id,
        REGION,
        "sts",
        "v4",
        credentials,
        session.events,
    )
    request = {
        "method": "GET",
        "url": f"https://sts.{REGION}.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {"x-k8s-aws-id": cloud.config.cluster},
        "context": {},
    }
    url = signer.generate_presigned_url(request, region_name=REGION, expires_in=60, operation_name="")
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def test_a_role_without_an_access_entry_is_unauthorized(
    cluster: ClusterApi, cluster_cloud: LocalCloud, role_arn: str
) -> None:
    assert cluster.as_bearer(eks_token(cluster_cloud, role_arn)).call("GET", NODES).status == 401


def test_a_role_with_an_access_entry_may_do_what_rbac_gives_its_groups(
    cluster: ClusterApi, cluster_cloud: LocalCloud, role_arn: str
) -> None:
    group = f"readers-{uuid4().hex[:8]}"
    client(cluster_cloud, "eks").create_access_entry(
        clusterName=cluster_cloud.config.cluster, principalArn=role_arn, kubernetesGroups=[group]
    )
    caller = cluster.as_bearer(eks_token(cluster_cloud, role_arn))
    assert caller.call("GET", NODES).status == 403

    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    cluster.create(f"{rbac}/clusterroles", {"metadata": {"name": group}, "rules": [rule]})
    cluster.create(
        f"{rbac}/clusterrolebindings",
        {
            "metadata": {"name": group},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": group},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
        },
    )

    assert caller.call("GET", NODES).status == 200
    assert caller.call("POST", NODES, {"metadata": {"name": "forged"}}).status == 403
