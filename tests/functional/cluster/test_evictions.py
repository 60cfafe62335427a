"""Evictions as the API server answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from firstbell.cluster.evictions import EvictionResult
from tests.fakes.api_server import Answer, ScriptedApiServer, refusal
from tests.unit.cluster.objects import a_pod

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstbell.cluster.client import ApiServer
    from firstbell.cluster.kubernetes import KubernetesCluster
    from tests.functional.cluster.conftest import Client

POD = a_pod("u1", name="jupyter-ada", namespace="hub")
PATH = "/api/v1/namespaces/hub/pods/jupyter-ada"
EVICTION = f"{PATH}/eviction"

TWO_BUDGETS = refusal(
    500, "", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
ANOTHER_UID = refusal(
    409,
    "Conflict",
    "Operation cannot be fulfilled on Pod: the UID in the precondition (u1) does not match the UID in record (u2).",
)


def test_an_eviction_names_the_pod_its_namespace_its_uid_and_the_grace(
    server: ScriptedApiServer, cluster: KubernetesCluster
) -> None:
    """Cases 17, 22 and 24."""
    server.answer("POST", EVICTION, Answer(201, {"kind": "Status", "status": "Success"}))
    assert cluster.evict(POD, 95).result is EvictionResult.ACCEPTED
    assert server.requests[0].body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "jupyter-ada", "namespace": "hub"},
        "deleteOptions": {"gracePeriodSeconds": 95, "preconditions": {"uid": "u1"}},
    }


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(refusal(404, "NotFound", "pods not found"), EvictionResult.GONE, id="case 22: 404"),
        pytest.param(ANOTHER_UID, EvictionResult.GONE, id="case 17: another UID"),
        pytest.param(
            refusal(409, "Conflict", "the object has been modified"), EvictionResult.UNKNOWN, id="another 409"
        ),
        pytest.param(
            refusal(429, "TooManyRequests", causes=["DisruptionBudget"]), EvictionResult.BUDGET, id="case 14: budget"
        ),
        pytest.param(
            refusal(429, "TooManyRequests", Retry_After="3"), EvictionResult.THROTTLED, id="case 14: flow control"
        ),
        pytest.param(TWO_BUDGETS, EvictionResult.MISCONFIGURED, id="case 13: two budgets"),
        pytest.param(
            Answer(201, TWO_BUDGETS.body), EvictionResult.MISCONFIGURED, id="case 13: two budgets in a 201's body"
        ),
        pytest.param(refusal(500, "InternalError", "etcd"), EvictionResult.UNKNOWN, id="another 500"),
        pytest.param(
            refusal(403, "Forbidden", causes=["NamespaceTerminating"]),
            EvictionResult.NAMESPACE_TERMINATING,
            id="case 18: namespace terminating",
        ),
        pytest.param(refusal(403, "Forbidden", "pods is forbidden"), EvictionResult.DENIED, id="case 18: RBAC"),
        pytest.param(refusal(401, "Unauthorized"), EvictionResult.DENIED, id="case 62: 401 twice"),
        pytest.param(Answer(hang_up=True), EvictionResult.UNKNOWN, id="connection lost"),
    ],
)
def test_each_answer_to_an_eviction_has_its_name(
    answer: Answer, expected: EvictionResult, server: ScriptedApiServer, cluster: KubernetesCluster, client: Client
) -> None:
    server.answer("POST", EVICTION, answer)
    assert cluster.evict(POD, 30).result is expected
    assert client.slept == []


def test_throttling_says_how_long_to_wait(server: ScriptedApiServer, cluster: KubernetesCluster) -> None:
    server.answer("POST", EVICTION, refusal(429, "TooManyRequests", Retry_After="3"))
    assert cluster.evict(POD, 30).retry_after_seconds == 3.0


def test_an_eviction_that_is_not_answered_in_time_is_unknown(
    server: ScriptedApiServer, api_server: Callable[..., ApiServer]
) -> None:
    from firstbell.cluster.kubernetes import KubernetesCluster

    server.answer("POST", EVICTION, Answer(silent=True))
    cluster = KubernetesCluster(api_server(read_timeout_seconds=0.2))
    assert cluster.evict(POD, 30).result is EvictionResult.UNKNOWN
    assert len(server.requests) == 1


def test_a_401_in_mid_drain_evicts_once(server: ScriptedApiServer, cluster: KubernetesCluster) -> None:
    """Case 61: no duplicate evictions."""
    server.answer("POST", EVICTION, refusal(401, "Unauthorized"), Answer(201, {"kind": "Status", "status": "Success"}))
    assert cluster.evict(POD, 30).result is EvictionResult.ACCEPTED
    assert [request.token for request in server.requests] == ["token-1", "token-2"]


def test_a_deletion_has_the_same_precondition_and_a_grace_of_at_least_a_second(
    server: ScriptedApiServer, cluster: KubernetesCluster
) -> None:
    server.answer("DELETE", PATH, Answer(body={"kind": "Pod", "status": {"phase": "Running"}}))
    assert cluster.delete_pod(POD, 0).result is EvictionResult.ACCEPTED
    assert server.requests[0].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 1,
        "preconditions": {"uid": "u1"},
    }


def test_a_deletion_of_a_namesake_is_refused_and_the_pod_is_gone(
    server: ScriptedApiServer, cluster: KubernetesCluster
) -> None:
    server.answer("DELETE", PATH, ANOTHER_UID)
    assert cluster.delete_pod(POD, 5).result is EvictionResult.GONE
