"""The API server over real sockets: tokens, patience, pages, silence."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from firstbell.cluster.client import IDLE_SECONDS, LIST_ATTEMPTS
from firstbell.cluster.status import ApiRefused, StatusError
from firstbell.errors import AccessDenied, ClusterUnreachable, Conflict, FirstbellError, NotFound, RetryLater
from tests.fakes.api_server import Answer, Request, ScriptedApiServer, black_hole, certificate_authority, page, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstbell.cluster.client import ApiServer
    from tests.functional.cluster.conftest import Client

PODS = "/api/v1/pods"
NODE = "/api/v1/nodes/n1"


def _name(raw: dict[str, Any]) -> str:
    return str(raw["metadata"]["name"])


def _items(*names: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name}} for name in names]


# tokens


def test_a_token_is_minted_once_and_used_again(server: ScriptedApiServer, client: Client, api: ApiServer) -> None:
    server.answer("GET", NODE, Answer(body={"metadata": {}}))
    for _ in range(3):
        api.request("GET", NODE)
    assert [request.token for request in server.requests] == ["token-1"] * 3


def test_a_warm_environment_mints_a_new_token_before_the_old_one_expires(
    server: ScriptedApiServer, client: Client, api: ApiServer
) -> None:
    """Case 61: sixteen minutes later."""
    server.answer("GET", NODE, Answer())
    api.request("GET", NODE)
    client.now += 13 * 60
    api.request("GET", NODE)
    client.now += 3 * 60
    api.request("GET", NODE)
    assert [request.token for request in server.requests] == ["token-1", "token-1", "token-2"]


def test_a_401_is_tried_once_more_with_a_new_token(server: ScriptedApiServer, client: Client, api: ApiServer) -> None:
    """Case 61: 401 in the middle of a drain; the request carries on, once."""
    server.answer("POST", PODS, refusal(401, "Unauthorized"), Answer(201, {"kind": "Eviction"}))
    assert api.request("POST", PODS, body={"a": 1}) == {"kind": "Eviction"}
    assert [(request.token, request.body) for request in server.requests] == [
        ("token-1", {"a": 1}),
        ("token-2", {"a": 1}),
    ]


def test_two_401s_are_a_refusal_and_not_an_empty_cluster(
    server: ScriptedApiServer, client: Client, api: ApiServer
) -> None:
    """Case 62: no access entry."""
    server.answer("GET", PODS, refusal(401, "Unauthorized"))
    with pytest.raises(AccessDenied):
        api.list_all(PODS, _name)
    assert len(server.requests) == 2


def test_threads_whose_token_was_refused_mint_one_new_token(
    server: ScriptedApiServer, client: Client, api: ApiServer
) -> None:
    all_asked = threading.Barrier(4)

    def refuse_the_first_token(request: Request) -> Answer:
        if request.token != "token-1":
            return Answer()
        all_asked.wait(timeout=5)
        return refusal(401, "Unauthorized")

    server.answer("GET", NODE, refuse_the_first_token)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: api.request("GET", NODE), range(4)))
    assert client.minted == 2


# patience


@pytest.mark.parametrize("code", [429, 503])
def test_retry_after_is_honoured(code: int, server: ScriptedApiServer, client: Client, api: ApiServer) -> None:
    """Case 14: plain throttling by the API server."""
    server.answer("GET", NODE, refusal(code, "TooManyRequests", Retry_After="2"), Answer(body={"ok": 1}))
    assert api.request("GET", NODE) == {"ok": 1}
    assert client.slept == [2.0]


def test_throttling_beyond_our_patience_is_for_a_later_attempt(
    server: ScriptedApiServer, client: Client, api: ApiServer
) -> None:
    server.answer("GET", NODE, refusal(429, "TooManyRequests", Retry_After="2"))
    with pytest.raises(ClusterUnreachable) as caught:
        api.request("GET", NODE)
    assert client.slept == [2.0, 2.0]
    assert isinstance(caught.value, StatusError)
    assert caught.value.status.retry_after_seconds == 2.0


def test_a_budgets_429_is_not_waited_for(server: ScriptedApiServer, client: Client, api: ApiServer) -> None:
    server.answer("POST", PODS, refusal(429, "TooManyRequests", causes=["DisruptionBudget"], Retry_After="1"))
    with pytest.raises(RetryLater):
        api.request("POST", PODS, body={})
    assert client.slept == []


# refusals


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (400, ApiRefused),
        (403, AccessDenied),
        (404, NotFound),
        (409, Conflict),
        (422, ApiRefused),
        (500, ClusterUnreachable),
        (504, ClusterUnreachable),
    ],
)
def test_each_refusal_has_its_error_and_keeps_the_servers_words(
    code: int, expected: type[FirstbellError], server: ScriptedApiServer, api: ApiServer
) -> None:
    server.answer("PATCH", NODE, refusal(code, "Reason", "what the server said", causes=["Cause"]))
    with pytest.raises(expected, match="what the server said") as caught:
        api.request("PATCH", NODE, body={})
    assert isinstance(caught.value, StatusError)
    assert (caught.value.status.reason, caught.value.status.causes) == ("Reason", ("Cause",))


def test_a_failure_in_the_body_counts_whatever_the_http_code_says(server: ScriptedApiServer, api: ApiServer) -> None:
    answer = refusal(500, "", "This pod has more than one PodDisruptionBudget")
    server.answer("POST", PODS, Answer(201, answer.body))
    with pytest.raises(ClusterUnreachable, match="more than one PodDisruptionBudget"):
        api.request("POST", PODS, body={})


@pytest.mark.parametrize("code", [200, 502])
def test_what_is_not_json_came_from_something_in_between(code: int, server: ScriptedApiServer, api: ApiServer) -> None:
    server.answer("GET", NODE, Answer(code, b"<html>Bad gateway</html>"))
    with pytest.raises(ClusterUnreachable):
        api.request("GET", NODE)


# silence


def test_a_black_hole_costs_the_connect_timeout(api_server: Callable[..., ApiServer]) -> None:
    """Case 62: a private endpoint that no route reaches."""
    with black_hole() as endpoint:
        api = api_server(endpoint=endpoint, connect_timeout_seconds=0.3)
        began = time.monotonic()
        with pytest.raises(ClusterUnreachable):
            api.list_all(PODS, _name)
        assert time.monotonic() - began < 2


def test_a_server_that_never_answers_costs_the_read_timeout(
    server: ScriptedApiServer, api_server: Callable[..., ApiServer]
) -> None:
    server.answer("GET", NODE, Answer(silent=True))
    began = time.monotonic()
    with pytest.raises(ClusterUnreachable):
        api_server(read_timeout_seconds=0.3).request("GET", NODE)
    assert time.monotonic() - began < 2
    assert len(server.requests) == 1


def test_a_refused_connection_is_unreachable(api_server: Callable[..., ApiServer]) -> None:
    with black_hole() as endpoint:
        pass  # nobody listens there any more
    with pytest.raises(ClusterUnreachable):
        api_server(endpoint=endpoint).request("GET", NODE)


def test_a_server_of_another_ca_is_not_spoken_to(api_server: Callable[..., ApiServer], client: Client) -> None:
    another, _ = certificate_authority("somebody else's API server")
    with pytest.raises(ClusterUnreachable):
        api_server(ca_data=another).request("GET", NODE)
    assert client.server.requests == []


def test_a_read_over_a_broken_connection_is_tried_once_more(server: ScriptedApiServer, api: ApiServer) -> None:
    server.answer("GET", NODE, Answer(hang_up=True), Answer(body={"ok": 1}))
    assert api.request("GET", NODE) == {"ok": 1}


def test_a_write_over_a_broken_connection_is_not_repeated_blindly(server: ScriptedApiServer, api: ApiServer) -> None:
    server.answer("PATCH", NODE, Answer(hang_up=True))
    with pytest.raises(ClusterUnreachable):
        api.request("PATCH", NODE, body={})
    assert len(server.requests) == 1


def test_connections_are_used_again_but_not_after_the_environment_was_frozen(
    server: ScriptedApiServer, client: Client, api: ApiServer
) -> None:
    server.answer("GET", NODE, Answer())
    api.request("GET", NODE)
    api.request("GET", NODE)
    client.now += IDLE_SECONDS + 1
    api.request("GET", NODE)
    first, second, third = (request.connection for request in server.requests)
    assert first == second != third


# pages


def test_a_list_is_read_page_by_page(server: ScriptedApiServer, api: ApiServer) -> None:
    server.answer("GET", PODS, page(_items("a", "b"), "t1"), page(_items("c"), "t2"), page(_items("d")))
    assert api.list_all(PODS, _name, label_selector="app=hub", limit=2) == ["a", "b", "c", "d"]
    assert [dict(request.query) for request in server.requests] == [
        {"limit": "2", "labelSelector": "app=hub"},
        {"limit": "2", "labelSelector": "app=hub", "continue": "t1"},
        {"limit": "2", "labelSelector": "app=hub", "continue": "t2"},
    ]


def test_items_that_the_parser_does_not_want_are_left_out(server: ScriptedApiServer, api: ApiServer) -> None:
    server.answer("GET", PODS, page(_items("a", "b")))
    assert api.list_all(PODS, lambda raw: _name(raw) if _name(raw) == "b" else None) == ["b"]


def test_a_list_that_goes_stale_between_pages_begins_again_from_nothing(
    server: ScriptedApiServer, api: ApiServer
) -> None:
    server.answer("GET", PODS, page(_items("a"), "t1"), refusal(410, "Expired"), page(_items("b"), "t2"), page([]))
    assert api.list_all(PODS, _name) == ["b"]
    assert "continue" not in server.requests[2].query


def test_a_list_that_is_always_stale_is_unreachable_and_not_short(server: ScriptedApiServer, api: ApiServer) -> None:
    server.answer("GET", PODS, *[page(_items("a"), "t1"), refusal(410, "Expired")] * LIST_ATTEMPTS)
    with pytest.raises(ClusterUnreachable):
        api.list_all(PODS, _name)
    assert len(server.requests) == 2 * LIST_ATTEMPTS


def test_an_error_on_a_later_page_is_not_a_short_list(server: ScriptedApiServer, api: ApiServer) -> None:
    server.answer("GET", PODS, page(_items("a"), "t1"), refusal(500, "InternalError"))
    with pytest.raises(ClusterUnreachable):
        api.list_all(PODS, _name)
