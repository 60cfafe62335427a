"""Our density is the number of pods that the real kube-scheduler puts on a node, neither one more nor one less.

Every combination of a recorded node size, a pod and the DaemonSets around it has a node of its own and a ReplicaSet
that wants two pods more than we promise. No kubelet runs them: being bound is all that counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from firstbell.capacity.daemonsets import daemonset_overhead
from firstbell.capacity.density import NodeShape, places
from firstbell.capacity.requests import allocatable_resources, pod_requests
from firstbell.cluster.daemonsets import parse_daemonset
from localcloud.cloud import LocalCloud
from localcloud.fleet.sizes import node_size
from tests.e2e.cluster_api import NODES, ClusterApi, Document, await_value
from tests.e2e.density_combinations import DAEMONSETS, POOL_TAINT, Combination, combinations

NAMESPACE = "density"
BEYOND = 2
LEAST_COMBINATIONS = 60
ATTACH_DRIVER = "ebs.csi.aws.com"


@pytest.fixture(scope="module")
def cluster(cluster_cloud: LocalCloud) -> Iterator[ClusterApi]:
    api = ClusterApi.of(cluster_cloud)
    api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
    await_value("the namespace has its account", lambda: api.exists(account), bool)
    yield api
    api.delete(f"{NODES}?labelSelector=pool%3Ddensity")
    api.delete(f"/api/v1/namespaces/{NAMESPACE}")


def in_namespace(group: str, plural: str) -> str:
    return f"/{group}/namespaces/{NAMESPACE}/{plural}"


def create_daemonsets(api: ClusterApi) -> list[Document]:
    created = []
    for name, spec in DAEMONSETS.items():
        labels = {"daemonset": name}
        template = {"metadata": {"labels": labels}, "spec": {"tolerations": [{"operator": "Exists"}], **spec}}
        body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
        created.append(api.create(in_namespace("apis/apps/v1", "daemonsets"), body))
    return created


def pods(api: ClusterApi, selector: str, *, unbound_only: bool = False) -> list[Document]:
    fields = "&fieldSelector=spec.nodeName=" if unbound_only else ""
    listed: list[Document] = api.get(f"{in_namespace('api/v1', 'pods')}?labelSelector={selector}{fields}")["items"]
    return listed


def refused(pod: Document) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions)


def await_daemonset_pods(api: ClusterApi, expected: int) -> None:
    await_value(
        f"{expected} DaemonSet pods are bound",
        lambda: sum(bool(pod["spec"].get("nodeName")) for pod in pods(api, "daemonset")),
        lambda count: count >= expected,
        timeout_seconds=60,
    )


def stored_spec(api: ClusterApi, combination: Combination) -> Document:
    """The pod as the API server would store it: defaults and the runtime class's overhead filled in."""
    body = {"metadata": {"name": combination.name}, "spec": combination.pod_spec()}
    answer = api.call("POST", f"{in_namespace('api/v1', 'pods')}?dryRun=All", body)
    assert answer.status == 201, answer
    spec: Document = answer.body["spec"]
    return spec


def expected_density(
    api: ClusterApi, combination: Combination, daemonsets: list[Document], attach_limit: int | None = None
) -> int:
    node = api.get(f"{NODES}/{combination.name}")
    allocatable = allocatable_resources(node["status"]["allocatable"], attach_limit)
    overhead = daemonset_overhead(map(parse_daemonset, daemonsets), node["metadata"]["labels"], (POOL_TAINT,))
    shape = NodeShape(combination.instance_type, allocatable, overhead)
    return places(shape.free, pod_requests(stored_spec(api, combination), combination.volumes))


def create_replica_set(api: ClusterApi, combination: Combination, replicas: int) -> None:
    labels = {"filling": combination.name}
    template = {"metadata": {"labels": labels}, "spec": combination.pod_spec()}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    api.create(in_namespace("apis/apps/v1", "replicasets"), {"metadata": {"name": combination.name}, "spec": spec})


def await_decisions(api: ClusterApi, wanted: int, selector: str = "filling") -> Counter[str]:
    """Node -> pods bound to it, once `wanted` pods are there and the scheduler has bound or refused each."""
    await_value(
        "every pod that is not bound is refused",
        lambda: pods(api, selector, unbound_only=True),
        lambda unbound: bool(unbound) and all(map(refused, unbound)) and len(pods(api, selector)) == wanted,
        timeout_seconds=90,
    )
    return Counter(node for pod in pods(api, selector) if (node := pod["spec"].get("nodeName")))


def test_the_scheduler_places_exactly_our_density(cluster: ClusterApi) -> None:
    cluster.create(
        "/apis/node.k8s.io/v1/runtimeclasses",
        {
            "metadata": {"name": "sandboxed"},
            "handler": "s",
            "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        },
    )
    tried = combinations()
    assert len(tried) >= LEAST_COMBINATIONS
    for one in tried:
        cluster.create(NODES, one.node())
    daemonsets = create_daemonsets(cluster)
    landing = Counter(one.daemonsets for one in tried)
    await_daemonset_pods(cluster, 2 * landing["add-ons"] + 4 * landing["many"])

    expected = {one.name: expected_density(cluster, one, daemonsets) for one in tried}
    for one in tried:
        create_replica_set(cluster, one, expected[one.name] + BEYOND)
    placed = await_decisions(cluster, sum(expected.values()) + BEYOND * len(tried))

    assert {name: placed.get(name, 0) for name in expected} == expected
    assert 0 in expected.values()
    assert len(set(expected.values())) > 10


def test_volumes_are_counted_against_the_nodes_attach_limit(cluster: ClusterApi) -> None:
    """Each pod brings five volumes of its own; an m5.large was recorded with room for 25."""
    one = Combination("m5.large", "tiny", "none", volumes=5)
    limit = node_size(one.instance_type).ebs_attach_limit
    assert limit is not None
    cluster.create(NODES, one.node())
    driver = {"name": ATTACH_DRIVER, "nodeID": one.name, "topologyKeys": None, "allocatable": {"count": limit}}
    cluster.create("/apis/storage.k8s.io/v1/csinodes", {"metadata": {"name": one.name}, "spec": {"drivers": [driver]}})
    expected = expected_density(cluster, one, [], attach_limit=limit)
    claims = [
        [create_bound_claim(cluster, f"home-{number}-{volume}") for volume in range(one.volumes)]
        for number in range(expected + BEYOND)
    ]
    await_value(
        "the claims are bound",
        lambda: cluster.get(in_namespace("api/v1", "persistentvolumeclaims"))["items"],
        lambda seen: all(claim["status"].get("phase") == "Bound" for claim in seen),
    )
    for number, names in enumerate(claims):
        volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in names]
        metadata = {"name": f"attaching-{number}", "labels": {"filling": one.name}}
        spec = one.pod_spec() | {"volumes": volumes}
        cluster.create(in_namespace("api/v1", "pods"), {"metadata": metadata, "spec": spec})
    placed = await_decisions(cluster, expected + BEYOND, selector=f"filling={one.name}")
    assert placed == {one.name: expected} == {one.name: limit // one.volumes}


def create_bound_claim(api: ClusterApi, name: str) -> str:
    """A claim and the volume that is made for it."""
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": name}
    claim = {"metadata": {"name": name}, "spec": common | {"resources": {"requests": {"storage": "1Gi"}}}}
    volume = {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": NAMESPACE, "name": name},
            "csi": {"driver": ATTACH_DRIVER, "volumeHandle": name},
        },
    }
    api.create("/api/v1/persistentvolumes", volume)
    api.create(in_namespace("api/v1", "persistentvolumeclaims"), claim)
    return name
