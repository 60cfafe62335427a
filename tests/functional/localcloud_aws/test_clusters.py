from __future__ import annotations

import base64

from tests.functional.localcloud_aws.conftest import ACCOUNT, CA, CLUSTER, StartedCloud


def test_the_cluster_answers_with_the_real_endpoint_and_ca(cloud: StartedCloud) -> None:
    cluster = cloud.client("eks").describe_cluster(name=CLUSTER)["cluster"]
    assert cluster["endpoint"] == cloud.kubernetes_endpoint
    assert base64.b64decode(cluster["certificateAuthority"]["data"]) == CA
    assert (cluster["status"], cluster["accessConfig"]) == ("ACTIVE", {"authenticationMode": "API"})


def test_access_entries_are_kept(cloud: StartedCloud) -> None:
    eks, principal = cloud.client("eks"), f"arn:aws:iam::{ACCOUNT}:role/tick"
    eks.create_access_entry(clusterName=CLUSTER, principalArn=principal, kubernetesGroups=["firstbell:tick"])
    entry = eks.describe_access_entry(clusterName=CLUSTER, principalArn=principal)["accessEntry"]
    assert entry["kubernetesGroups"] == ["firstbell:tick"]
    assert principal in eks.list_access_entries(clusterName=CLUSTER)["accessEntries"]
    eks.delete_access_entry(clusterName=CLUSTER, principalArn=principal)
    assert principal not in eks.list_access_entries(clusterName=CLUSTER)["accessEntries"]
