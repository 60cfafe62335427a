"""Nodes, pods, volumes and events as the API server sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from firstbell.capacity.requests import NO_ATTACH_LIMIT
from firstbell.capacity.scheduling import Taint, Toleration
from firstbell.cluster.access import Verb
from firstbell.cluster.cordons import CordonMark, mark_of
from firstbell.cluster.image_pulls import ImagePull, pull_seconds
from firstbell.cluster.nodes import parse_node, with_attach_limits
from firstbell.cluster.pods import parse_pod
from firstbell.cluster.volumes import NO_ZONE, VolumeAttachment
from firstbell.errors import Conflict, NotFound
from tests.fakes.api_server import Answer, Request, ScriptedApiServer, page, refusal
from tests.unit.cluster.objects import a_node, a_pod

if TYPE_CHECKING:
    from firstbell.cluster.kubernetes import KubernetesCluster

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"

NODE: dict[str, Any] = {
    "metadata": {
        "name": "worker-7",
        "resourceVersion": "812",
        "creationTimestamp": "2026-12-01T08:55:00Z",
        "labels": {
            "node.kubernetes.io/instance-type": "m5.large",
            "topology.kubernetes.io/zone": "us-west-2a",
            "kubernetes.io/hostname": "something-else",
        },
        "annotations": {"theirs": "1"},
    },
    "spec": {
        "providerID": "aws:///us-west-2a/i-0aa",
        "unschedulable": True,
        "taints": [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-12-01T08:56:00Z"}
        ],
    },
    "status": {
        "allocatable": {"cpu": "1930m", "memory": "7291224Ki", "pods": "29", "ephemeral-storage": "18242267924"},
        "conditions": [
            {"type": "MemoryPressure", "status": "False"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-12-01T08:55:30Z"},
        ],
    },
}

POD: dict[str, Any] = {
    "metadata": {
        "name": "jupyter-ada",
        "namespace": "hub",
        "uid": "u1",
        "creationTimestamp": "2026-12-01T09:00:00Z",
        "deletionTimestamp": "2026-12-01T10:00:00Z",
        "labels": {"firstbell.dev/reference": "bio101"},
        "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
        "ownerReferences": [
            {"kind": "Other", "name": "no"},
            {"kind": "StatefulSet", "name": "web", "controller": True},
        ],
    },
    "spec": {
        "nodeName": "worker-7",
        "priority": 1000,
        "terminationGracePeriodSeconds": 600,
        "nodeSelector": {"pool": "notebooks"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
                    ]
                }
            }
        },
        "tolerations": [{"key": "hub.jupyter.org/dedicated", "value": "user", "effect": "NoSchedule"}],
        "containers": [{"resources": {"requests": {"cpu": "500m", "memory": "2Gi"}}}],
        "volumes": [
            {"name": "home", "persistentVolumeClaim": {"claimName": "claim-ada"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "config", "configMap": {"name": "hub"}},
        ],
    },
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-12-01T09:00:01Z"},
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-12-01T09:00:09Z"},
        ],
    },
}


def test_a_node_is_read() -> None:
    node = parse_node(NODE)
    assert (node.name, node.instance_id, node.instance_type, node.zone) == (
        "worker-7",
        "i-0aa",
        "m5.large",
        "us-west-2a",
    )
    assert (node.ready, node.unschedulable, node.resource_version) == (True, True, "812")
    assert node.ready_at - node.created_at == 30
    assert node.taints[0].time_added == "2026-12-01T08:56:00Z"
    assert (node.allocatable.cpu_millicores, node.allocatable.memory_bytes) == (1930, 7291224 * 1024)
    assert (node.allocatable.pods, node.allocatable.volumes) == (29, NO_ATTACH_LIMIT)


def test_a_pod_is_read() -> None:
    pod = parse_pod(POD)
    assert (pod.uid, pod.name, pod.namespace, pod.node_name) == ("u1", "jupyter-ada", "hub", "worker-7")
    assert (pod.requests.cpu_millicores, pod.requests.memory_bytes, pod.requests.pods) == (500, 2 << 30, 1)
    assert (pod.owner_kind, pod.owner_name) == ("StatefulSet", "web")
    assert pod.node_selector == {"pool": "notebooks", "disk": "ssd"}
    assert pod.tolerations == (Toleration("hub.jupyter.org/dedicated", "Equal", "user", "NoSchedule"),)
    assert (pod.scheduled_at - pod.created_at, pod.ready_at) == (1, 0)
    assert (pod.terminating, pod.deletion_at - pod.created_at, pod.grace_seconds) == (True, 3600, 600)
    assert (pod.claims, pod.requests.volumes) == (("claim-ada", "jupyter-ada-scratch"), 2)
    assert (pod.safe_to_evict, pod.local_storage, pod.finished, pod.mirror) == (False, True, False, False)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_is_said_to_be_finished(phase: str) -> None:
    """Case 19."""
    assert parse_pod({"status": {"phase": phase}}).finished


def test_a_mirror_pod_is_known_by_its_annotation() -> None:
    """Case 19."""
    assert parse_pod({"metadata": {"annotations": {"kubernetes.io/config.mirror": "hash"}}}).mirror


def test_absent_fields_read_as_empty() -> None:
    node, pod = parse_node({}), parse_pod({"metadata": None, "spec": None, "status": None})
    assert (node.instance_id, node.ready, node.taints) == ("", False, ())
    assert (pod.node_name, pod.bound, pod.grace_seconds, pod.requests.pods) == ("", False, 30, 1)


def test_a_memory_backed_empty_dir_is_not_local_storage() -> None:
    assert not parse_pod({"spec": {"volumes": [{"emptyDir": {"medium": "Memory"}}]}}).local_storage


def test_a_node_that_is_not_ready_was_never_ready_as_far_as_we_know() -> None:
    conditions = [{"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-12-01T08:55:30Z"}]
    node = parse_node({"status": {"conditions": conditions}})
    assert (node.ready, node.ready_at) == (False, 0)


@pytest.mark.parametrize(
    "name",
    ["ip-10-0-0-5.us-west-2.compute.internal", "i-0aa", "i-0aa.aws.example.com", "ip-10-0-0-5", "worker-7"],
)
def test_a_node_is_found_by_its_provider_id_whatever_its_name(
    name: str, server: ScriptedApiServer, cluster: KubernetesCluster
) -> None:
    """Case 10."""
    decoys = [
        {"metadata": {"name": "i-0a"}, "spec": {"providerID": "aws:///us-west-2a/i-0a"}},
        {"metadata": {"name": "fargate"}, "spec": {}},
    ]
    found = {"metadata": {"name": name}, "spec": {"providerID": "aws:///us-west-2a/i-0aa"}}
    server.answer("GET", NODES, page(decoys, "t1"), page([found]))
    nodes = cluster.nodes_of_instances(["i-0aa", "i-0gone"])
    assert {instance_id: node.name for instance_id, node in nodes.items()} == {"i-0aa": name}


def test_a_part_of_an_instance_id_finds_no_node(server: ScriptedApiServer, cluster: KubernetesCluster) -> None:
    """Case 10: i-0a is not i-0aa."""
    server.answer("GET", NODES, page([NODE]))
    assert cluster.nodes_of_instances(["i-0a"]) == {}


def test_lists_ask_for_no_more_than_they_need(server: ScriptedApiServer, cluster: KubernetesCluster) -> None:
    server.answer("GET", NODES, page([NODE]))
    server.answer("GET", PODS, page([POD]))
    cluster.nodes("pool=notebooks")
    cluster.pods()
    cluster.pending_pods()
    cluster.pods_on_node("worker-7")
    assert [
        request.query.get("labelSelector") or request.query.get("fieldSelector") for request in server.requests
    ] == [
        "pool=notebooks",
        "status.phase!=Succeeded,status.phase!=Failed",
        "spec.nodeName=,status.phase=Pending",
        "spec.nodeName=worker-7",
    ]


def test_attach_limits_come_from_the_csi_node(server: ScriptedApiServer, cluster: KubernetesCluster) -> None:
    drivers = [{"name": "efs.csi.aws.com"}, {"name": "ebs.csi.aws.com", "allocatable": {"count": 25}}]
    server.answer(
        "GET",
        "/apis/storage.k8s.io/v1/csinodes",
        page([{"metadata": {"name": "n1"}, "spec": {"drivers": drivers}}, {"metadata": {"name": "n2"}, "spec": {}}]),
    )
    limits = cluster.attach_limits()
    assert limits == {"n1": 25}
    limited = with_attach_limits([a_node("n1"), a_node("n2")], limits)
    assert [node.allocatable.volumes for node in limited] == [25, a_node("n2").allocatable.volumes]


# cordons


def test_a_cordon_that_conflicts_is_read_again(server: ScriptedApiServer, cluster: KubernetesCluster) -> None:
    """Case 26: somebody's taint came between; it is in the second patch."""
    theirs = {"key": "example.com/theirs", "effect": "NoSchedule"}
    newer = {**NODE, "metadata": {**NODE["metadata"], "resourceVersion": "813"}, "spec": {"taints": [theirs]}}
    server.answer("PATCH", f"{NODES}/worker-7", refusal(409, "Conflict", "modified"), _merged_node)
    server.answer("GET", f"{NODES}/worker-7", Answer(body=newer))
    mark = CordonMark("interruption", "spot", since=1_764_580_000.0)
    with pytest.raises(Conflict):
        cluster.cordon(parse_node(NODE), mark)
    cordoned = cluster.cordon(cluster.node("worker-7"), mark)
    first, _, second = server.requests
    assert first.content_type == second.content_type == "application/merge-patch+json"
    assert (first.body["metadata"]["resourceVersion"], second.body["metadata"]["resourceVersion"]) == ("812", "813")
    assert second.body["spec"]["taints"][0] == theirs
    assert mark_of(cordoned, "interruption") == mark
    assert Taint("firstbell.dev/interruption", "spot") in cordoned.taints


def test_a_node_that_vanished_is_not_found(server: ScriptedApiServer, cluster: KubernetesCluster) -> None:
    server.answer("GET", f"{NODES}/worker-7", refusal(404, "NotFound"))
    with pytest.raises(NotFound):
        cluster.node("worker-7")


def test_an_annotation_is_set_and_removed_without_a_version_unless_one_is_given(
    server: ScriptedApiServer, cluster: KubernetesCluster
) -> None:
    server.answer("PATCH", f"{NODES}/worker-7", Answer(body=NODE))
    cluster.annotate_node("worker-7", {"a": "1", "b": None})
    cluster.annotate_node("worker-7", {"a": "1"}, "812")
    assert [request.body["metadata"] for request in server.requests] == [
        {"annotations": {"a": "1", "b": None}},
        {"annotations": {"a": "1"}, "resourceVersion": "812"},
    ]


# volumes


def _volume(claim: str, zones: list[str], **source: Any) -> dict[str, Any]:
    expressions = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": zones}]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}} if zones else None
    return {
        "spec": {"claimRef": {"namespace": "hub", "name": claim}, "nodeAffinity": affinity, **source},
        "status": {"phase": "Bound"},
    }


EBS = {"csi": {"driver": "ebs.csi.aws.com"}}
EFS = {"csi": {"driver": "efs.csi.aws.com"}}


@pytest.mark.parametrize(
    ("volumes", "zones", "attachments"),
    [
        pytest.param([_volume("home", ["us-west-2a"], **EBS)], ("us-west-2a",), 2, id="one bound, one not yet"),
        pytest.param(
            [_volume("home", ["us-west-2a"], **EBS), _volume("data", ["us-west-2b", "us-west-2a"], **EBS)],
            ("us-west-2a",),
            2,
            id="both bound",
        ),
        pytest.param(
            [_volume("home", ["us-west-2a"], **EBS), _volume("data", ["us-west-2b"], **EBS)],
            (NO_ZONE,),
            2,
            id="in different zones: fits nowhere",
        ),
        pytest.param([_volume("home", [], **EFS), _volume("data", [], **EFS)], (), 0, id="file systems"),
        pytest.param([], (), 2, id="not bound yet"),
    ],
)
def test_bound_volumes_say_zones_and_attachments(
    volumes: list[dict[str, Any]],
    zones: tuple[str, ...],
    attachments: int,
    server: ScriptedApiServer,
    cluster: KubernetesCluster,
) -> None:
    server.answer("GET", "/api/v1/persistentvolumes", page(volumes))
    (pod,) = cluster.with_bound_volumes([a_pod("u1", claims=("home", "data"))])
    assert (pod.zones, pod.requests.volumes) == (zones, attachments)


def test_volumes_are_not_listed_where_no_pod_has_a_claim(server: ScriptedApiServer, cluster: KubernetesCluster) -> None:
    assert cluster.with_bound_volumes([a_pod("u1")]) == [a_pod("u1")]
    assert server.requests == []


def test_volume_attachments_are_those_of_the_node(server: ScriptedApiServer, cluster: KubernetesCluster) -> None:
    def attachment(name: str, node: str) -> dict[str, Any]:
        return {
            "metadata": {"name": name},
            "spec": {"nodeName": node, "source": {"persistentVolumeName": f"pv-{name}"}},
            "status": {"attached": True},
        }

    server.answer(
        "GET", "/apis/storage.k8s.io/v1/volumeattachments", page([attachment("a", "n1"), attachment("b", "n2")])
    )
    assert cluster.volume_attachments("n1") == [VolumeAttachment("a", "pv-a", attached=True)]


# events


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ('Successfully pulled image "hub/user:1" in 3.2s (3.5s including waiting). Image size: 5 bytes.', 3.2),
        ('Successfully pulled image "hub/user:1" in 850ms (1m2.5s including waiting)', 0.85),
        ('Successfully pulled image "a b in 4s:1" in 1m2.5s', 62.5),
        ('Container image "hub/user:1" already present on machine', 0.0),
    ],
)
def test_kubelets_words_say_how_long_a_pull_took(message: str, seconds: float) -> None:
    assert pull_seconds(message) == pytest.approx(seconds)


def test_the_pulls_of_a_pods_containers_are_joined(server: ScriptedApiServer, cluster: KubernetesCluster) -> None:
    def pulled(uid: str, at: str, message: str) -> dict[str, Any]:
        return {"involvedObject": {"uid": uid}, "lastTimestamp": at, "message": message}

    server.answer(
        "GET",
        "/api/v1/namespaces/hub/events",
        page(
            [
                pulled("u1", "2026-12-01T09:00:10Z", 'Successfully pulled image "a" in 2s'),
                pulled("u1", "2026-12-01T09:00:14Z", 'Successfully pulled image "b" in 3.5s'),
                pulled("other", "2026-12-01T09:00:14Z", 'Successfully pulled image "b" in 3.5s'),
            ]
        ),
    )
    pulls = cluster.image_pulls("hub", ["u1", "u2"])
    assert pulls == {"u1": ImagePull(pulled_at=1_796_115_614.0, seconds=5.5)}
    assert server.requests[0].query["fieldSelector"] == "reason=Pulled,involvedObject.kind=Pod"


# our own access


def test_each_verb_is_asked_for_and_the_denied_ones_are_named(
    server: ScriptedApiServer, cluster: KubernetesCluster
) -> None:
    def review(request: Request) -> Answer:
        asked = request.body["spec"]["resourceAttributes"]
        return Answer(201, {"status": {"allowed": asked["subresource"] != "eviction"}})

    server.answer("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    verbs = [Verb("list", "pods"), Verb("create", "pods", subresource="eviction"), Verb("patch", "nodes")]
    denied = cluster.denied_verbs(verbs)
    assert [str(verb) for verb in denied] == ["create pods/eviction"]
    assert len(server.requests) == 3


def test_daemonsets_are_read_by_their_template(server: ScriptedApiServer, cluster: KubernetesCluster) -> None:
    template = {
        "spec": {
            "hostNetwork": True,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"resources": {"requests": {"cpu": "50m"}}}],
        }
    }
    metadata = {"namespace": "kube-system", "name": "aws-node"}
    server.answer("GET", "/apis/apps/v1/daemonsets", page([{"metadata": metadata, "spec": {"template": template}}]))
    (daemonset,) = cluster.daemonsets()
    assert (daemonset.name, daemonset.requests.cpu_millicores, daemonset.requests.pods) == (
        "kube-system/aws-node",
        50,
        1,
    )
    assert daemonset.tolerations == (Toleration(operator="Exists"),)
    assert daemonset.host_network


def _merged_node(request: Request) -> Answer:
    """What the API server answers: the node with the patch in it."""
    patch = request.body
    metadata = {**NODE["metadata"], "resourceVersion": "814", "annotations": patch["metadata"]["annotations"]}
    return Answer(body={**NODE, "metadata": metadata, "spec": patch["spec"]})
