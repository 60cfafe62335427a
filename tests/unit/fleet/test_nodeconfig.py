"""User data and tags, read as a node and cluster-autoscaler read them."""

from __future__ import annotations

import base64

import pytest

from localcloud.fleet.nodeconfig import NodeConfig, Taint, read_tags, read_user_data

NODE_CONFIG = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      maxPods: 110
      registerWithTaints:
      - {key: gpu, value: "true", effect: NoSchedule}
    flags: ["--node-labels=a=b,c/d=e"]
"""
MIME = f"""\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

{NODE_CONFIG}
--//--
"""
BOOTSTRAP = """\
#!/bin/bash
/etc/eks/bootstrap.sh hub \\
  --kubelet-extra-args '--node-labels=a=b,c/d=e --register-with-taints=gpu=true:NoSchedule --max-pods=110'
"""
EXPECTED = NodeConfig({"a": "b", "c/d": "e"}, (Taint("gpu", "true", "NoSchedule"),), 110, stated=True)


@pytest.mark.parametrize("text", [NODE_CONFIG, MIME, BOOTSTRAP], ids=["nodeadm", "mime", "bootstrap"])
def test_labels_taints_and_max_pods_are_read_from_every_form(text: str) -> None:
    assert read_user_data(base64.b64encode(text.encode()).decode()) == EXPECTED


def test_a_taint_without_a_value_is_read() -> None:
    config = read_user_data("bootstrap.sh hub --kubelet-extra-args '--register-with-taints=only:NoExecute'")
    assert config.taints == (Taint("only", "", "NoExecute"),)


def test_user_data_that_says_nothing_of_the_kubelet_states_nothing() -> None:
    assert read_user_data("") == NodeConfig()
    assert not read_user_data(base64.b64encode(b"#!/bin/sh\necho\n").decode()).stated


def test_node_template_tags_are_read_as_cluster_autoscaler_reads_them() -> None:
    prefix = "k8s.io/cluster-autoscaler/node-template"
    config = read_tags({f"{prefix}/label/team": "bio", f"{prefix}/taint/t": "v:NoSchedule", "Name": "pool"})
    assert config == NodeConfig({"team": "bio"}, (Taint("t", "v", "NoSchedule"),), stated=True)
