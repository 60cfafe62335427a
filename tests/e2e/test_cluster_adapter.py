"""The adapter's parsers, patches and names for answers, held to a real API server."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from firstbell.capacity.scheduling import Taint
from firstbell.cluster.access import Verb
from firstbell.cluster.client import ApiServer
from firstbell.cluster.cordons import CordonMark, mark_of
from firstbell.cluster.evictions import EvictionResult
from firstbell.cluster.kubernetes import KubernetesCluster
from firstbell.errors import AccessDenied, Conflict, NotFound
from tests.e2e.cluster_api import NODES, PODS, ClusterApi, Document, await_value, node_document, pod_document

if TYPE_CHECKING:
    from firstbell.capacity.cluster_view import Pod
    from localcloud.cloud import LocalCloud

NAMESPACES = "/api/v1/namespaces"
NOTICE = CordonMark("interruption", "spot", since=1_796_115_600.0, deadline=1_796_115_720.0)


def adapter_of(cloud: LocalCloud, token: str | None = None) -> KubernetesCluster:
    kubernetes = json.loads(cloud.wiring_file.read_text())["kubernetes"]
    ca_data = Path(kubernetes["ca_file"]).read_text()
    bearer = token or kubernetes["admin_token"]
    return KubernetesCluster(ApiServer(kubernetes["endpoint"], ca_data, lambda: bearer, time.time))


@pytest.fixture
def adapter(cluster_cloud: LocalCloud) -> KubernetesCluster:
    return adapter_of(cluster_cloud)


@pytest.fixture
def node_name(cluster: ClusterApi) -> str:
    name = f"i-{uuid4().hex[:17]}"
    cluster.create(NODES, node_document(name))
    cluster.await_condition(name, "True")
    return name


@pytest.fixture
def pod_name(cluster: ClusterApi, node_name: str) -> str:
    return running_pod(cluster, node_name)


def running_pod(cluster: ClusterApi, node_name: str, labels: dict[str, str] | None = None, **said: Any) -> str:
    name = f"pod-{uuid4().hex[:8]}"
    document = pod_document(name, node_name, **said)
    document["metadata"]["labels"] = labels or {}
    cluster.create(PODS, document)
    cluster.await_phase(name, "Running")
    return name


def only_pod(adapter: KubernetesCluster, node_name: str) -> Pod:
    (pod,) = adapter.pods_on_node(node_name)
    return pod


def budget(cluster: ClusterApi, labels: dict[str, str]) -> None:
    """A budget that allows nothing, once the controller has seen its pod."""
    name = f"budget-{uuid4().hex[:8]}"
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": labels}}
    cluster.create(
        path, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
    )
    await_value(
        f"{name} is observed",
        lambda: cluster.get(f"{path}/{name}").get("status", {}),
        lambda status: status.get("observedGeneration") == 1,
    )


def test_a_node_and_its_pod_are_read(adapter: KubernetesCluster, node_name: str, pod_name: str) -> None:
    node = adapter.nodes_of_instances([node_name])[node_name]
    assert (node.name, node.ready, node.unschedulable) == (node_name, True, False)
    assert (node.allocatable.cpu_millicores, node.allocatable.pods) == (3920, 58)
    pod = only_pod(adapter, node_name)
    assert (pod.name, pod.namespace, pod.requests.cpu_millicores) == (pod_name, "default", 250)
    assert pod.created_at <= pod.scheduled_at <= pod.ready_at
    assert pod in adapter.pods()


def test_a_pending_pod_is_found_by_its_phase_and_lack_of_a_node(
    adapter: KubernetesCluster, cluster: ClusterApi
) -> None:
    name = f"pod-{uuid4().hex[:8]}"
    cluster.create(PODS, pod_document(name, "no-such-node"))
    found = next(pod for pod in adapter.pending_pods() if pod.name == name)
    assert not found.bound
    assert found.node_selector == {"test": "no-such-node"}
    cluster.delete(f"{PODS}/{name}")


def test_the_pulls_of_a_pod_are_in_its_events(adapter: KubernetesCluster, node_name: str, pod_name: str) -> None:
    pod = only_pod(adapter, node_name)
    pulls = await_value("the pull is in the events", lambda: adapter.image_pulls("default", [pod.uid]), bool)
    assert pulls[pod.uid].pulled_at >= int(pod.scheduled_at)


def test_a_cordon_and_an_uncordon_leave_the_node_as_it_was(adapter: KubernetesCluster, node_name: str) -> None:
    before = adapter.node(node_name)
    cordoned = adapter.cordon(before, NOTICE)
    assert cordoned.unschedulable
    assert NOTICE.taint in cordoned.taints
    assert mark_of(adapter.node(node_name), "interruption") == NOTICE
    settled = await_value(
        "Kubernetes' own taint is there", lambda: adapter.node(node_name), lambda node: len(node.taints) == 2
    )
    adapter.uncordon(settled, "interruption")
    after = await_value("no taint is left", lambda: adapter.node(node_name), lambda node: not node.taints)
    assert (after.unschedulable, after.labels, after.annotations) == (False, before.labels, before.annotations)


def test_a_cordon_of_a_node_that_changed_conflicts(
    adapter: KubernetesCluster, cluster: ClusterApi, node_name: str
) -> None:
    """Case 26: and somebody's taint is not lost when it is read again."""
    stale = adapter.node(node_name)
    theirs = {"key": "example.com/theirs", "value": "1", "effect": "NoSchedule"}
    cluster.merge(f"{NODES}/{node_name}", {"spec": {"taints": [theirs]}})
    with pytest.raises(Conflict):
        adapter.cordon(stale, NOTICE)
    cordoned = adapter.cordon(adapter.node(node_name), NOTICE)
    assert {Taint("example.com/theirs", "1"), NOTICE.taint} <= set(cordoned.taints)


def test_an_out_of_service_taint_is_accepted(adapter: KubernetesCluster, node_name: str) -> None:
    tainted = adapter.taint_out_of_service(adapter.node(node_name))
    assert "node.kubernetes.io/out-of-service" in {taint.key for taint in tainted.taints}


def test_an_annotation_comes_and_goes(adapter: KubernetesCluster, node_name: str) -> None:
    hold = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
    assert adapter.annotate_node(node_name, {hold: "true"}).annotations[hold] == "true"
    assert hold not in adapter.annotate_node(node_name, {hold: None}).annotations


def test_a_node_that_does_not_exist_is_not_found(adapter: KubernetesCluster) -> None:
    with pytest.raises(NotFound):
        adapter.node("no-such-node")


def test_an_evicted_pod_goes_and_is_gone_when_asked_again(
    adapter: KubernetesCluster, node_name: str, pod_name: str
) -> None:
    """Case 22."""
    pod = only_pod(adapter, node_name)
    assert adapter.evict(pod, 1).result is EvictionResult.ACCEPTED
    await_value("the pod is gone", lambda: adapter.pods_on_node(node_name), lambda pods: not pods)
    assert adapter.evict(pod, 1).result is EvictionResult.GONE
    assert adapter.delete_pod(pod, 1).result is EvictionResult.GONE


def test_a_terminating_pod_says_when_its_grace_runs_out(
    adapter: KubernetesCluster, cluster: ClusterApi, node_name: str
) -> None:
    """Case 24: the grace of the eviction, not the pod's own hours."""
    running_pod(cluster, node_name, grace_seconds=21600)
    asked_at = time.time()
    adapter.evict(only_pod(adapter, node_name), 60)
    pod = only_pod(adapter, node_name)
    assert pod.terminating
    assert 55 <= pod.deletion_at - asked_at <= 65
    assert adapter.delete_pod(pod, 1).result is EvictionResult.ACCEPTED


def test_a_namesake_is_neither_evicted_nor_deleted(adapter: KubernetesCluster, node_name: str, pod_name: str) -> None:
    """Case 17."""
    namesake = replace(only_pod(adapter, node_name), uid=str(uuid4()))
    assert adapter.evict(namesake, 1).result is EvictionResult.GONE
    assert adapter.delete_pod(namesake, 1).result is EvictionResult.GONE
    assert not only_pod(adapter, node_name).terminating


def test_a_budget_that_allows_none_says_so(adapter: KubernetesCluster, cluster: ClusterApi, node_name: str) -> None:
    """Case 14."""
    labels = {"budget": node_name}
    running_pod(cluster, node_name, labels)
    budget(cluster, labels)
    assert adapter.evict(only_pod(adapter, node_name), 1).result is EvictionResult.BUDGET


def test_two_budgets_are_misconfigured(adapter: KubernetesCluster, cluster: ClusterApi, node_name: str) -> None:
    """Case 13."""
    labels = {"budget": node_name}
    running_pod(cluster, node_name, labels)
    budget(cluster, labels)
    budget(cluster, labels)
    assert adapter.evict(only_pod(adapter, node_name), 1).result is EvictionResult.MISCONFIGURED


def test_in_a_namespace_that_is_being_deleted_pods_are_waited_for(
    adapter: KubernetesCluster, cluster: ClusterApi, node_name: str
) -> None:
    """Case 18."""
    namespace = f"ns-{uuid4().hex[:8]}"
    cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    await_value(
        "the default account is there",
        lambda: cluster.exists(f"{NAMESPACES}/{namespace}/serviceaccounts/default"),
        lambda there: there,
    )
    cluster.create(f"{NAMESPACES}/{namespace}/pods", pod_document("lingering", node_name, grace_seconds=5))
    pod = await_value(
        "the pod runs", lambda: adapter.pods_on_node(node_name), lambda pods: bool(pods and pods[0].ready_at)
    )[0]
    cluster.delete(f"{NAMESPACES}/{namespace}")
    assert adapter.evict(pod, 1).result is EvictionResult.NAMESPACE_TERMINATING


def test_a_token_that_no_one_knows_is_denied_and_reads_no_empty_cluster(cluster_cloud: LocalCloud) -> None:
    """Case 62."""
    stranger = adapter_of(cluster_cloud, token="k8s-aws-v1.bm90IGEgdXJs")
    with pytest.raises(AccessDenied):
        stranger.nodes()


def test_every_list_that_we_read_is_there(adapter: KubernetesCluster, node_name: str) -> None:
    assert isinstance(adapter.daemonsets(), list)
    assert node_name not in adapter.attach_limits()
    assert adapter.volume_attachments(node_name) == []


def test_an_administrator_is_denied_nothing(adapter: KubernetesCluster) -> None:
    verbs = [Verb("patch", "nodes"), Verb("create", "pods", subresource="eviction")]
    assert adapter.denied_verbs(verbs) == []


def test_volumes_are_read_from_the_volumes_themselves(adapter: KubernetesCluster, cluster: ClusterApi) -> None:
    name = f"pv-{uuid4().hex[:8]}"
    expression = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": ["us-west-2a"]}
    volume: Document = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-0aa"},
            "claimRef": {"namespace": "default", "name": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
            "storageClassName": "",
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": name,
            "storageClassName": "",
        },
    }
    pod = pod_document(name, "no-such-node")
    pod["spec"]["volumes"] = [{"name": "home", "persistentVolumeClaim": {"claimName": name}}]
    cluster.create("/api/v1/persistentvolumes", volume)
    cluster.create(f"{NAMESPACES}/default/persistentvolumeclaims", claim)
    cluster.create(PODS, pod)
    bound = await_value(
        "the claim is bound",
        lambda: adapter.with_bound_volumes([pod for pod in adapter.pending_pods() if pod.name == name])[0],
        lambda pod: bool(pod.zones),
    )
    assert (bound.zones, bound.requests.volumes) == (("us-west-2a",), 1)
    cluster.delete(f"{PODS}/{name}")
