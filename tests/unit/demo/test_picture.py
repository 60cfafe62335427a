"""What a person sees of the morning is what the API server and the bus said."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from demo.board import Board, PoolBoard
from demo.measures import PodTimes, Raise
from demo.observer import Observer
from demo.story import spoken
from demo.summary import Evidence, column, side, table
from demo.tap import Heard
from demo.view import View


@pytest.fixture
def board() -> Board:
    return Board(pools={"pool": PoolBoard("pool", "announced"), "twin": PoolBoard("twin", "unannounced")})


@pytest.fixture
def observer(board: Board) -> Observer:
    return Observer(None, None, board)


def pod(name: str, pool: str = "pool", *, node: str | None = None, phase: str = "Pending") -> dict[str, Any]:
    spec = {"nodeSelector": {"hub.jupyter.org/pool-name": pool}, **({"nodeName": node} if node else {})}
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


def node(name: str, *, ready: bool, pool: str = "pool") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    labels = {"hub.jupyter.org/pool-name": pool}
    return {"metadata": {"name": name, "labels": labels}, "status": {"conditions": conditions}}


def test_a_pod_is_followed_from_pending_to_running_to_gone(board: Board, observer: Observer) -> None:
    pool = board.pools["pool"]

    observer.see_pod("ADDED", pod("a"))
    assert pool.waiting == 1
    observer.see_pod("MODIFIED", pod("a", node="n1"))
    assert (pool.waiting, pool.running) == (0, set())
    observer.see_pod("MODIFIED", pod("a", node="n1", phase="Running"))
    assert pool.running == {"a"}
    observer.see_pod("DELETED", pod("a", node="n1", phase="Running"))
    assert (pool.pods, pool.bound, pool.running) == (set(), set(), set())


def test_a_node_is_ready_from_the_first_time_that_it_says_so(board: Board, observer: Observer) -> None:
    pool = board.pools["pool"]

    observer.see_node("ADDED", node("n1", ready=False))
    assert (pool.nodes, pool.ready_at) == ({"n1"}, {})
    observer.see_node("MODIFIED", node("n1", ready=True))
    first = pool.ready_at["n1"]
    observer.see_node("MODIFIED", node("n1", ready=True))
    assert pool.ready_at["n1"] == first


def test_other_pools_are_nobodys_business(board: Board, observer: Observer) -> None:
    observer.see_node("ADDED", node("n1", ready=True, pool="hub"))
    observer.see_pod("ADDED", pod("a", "hub"))

    assert all(not pool.nodes and not pool.pods for pool in board.pools.values())


def test_without_a_terminal_each_thing_said_is_one_plain_line(board: Board) -> None:
    shown = io.StringIO()

    with View(board, Console(file=shown)):
        board.say("portal", "07:55  [40] in bio101")

    assert shown.getvalue().endswith("portal     07:55  [40] in bio101\n")
    assert shown.getvalue().count("\n") == 1


def test_in_a_terminal_the_board_is_drawn(board: Board) -> None:
    shown = io.StringIO()
    board.reach("signal", 100.0)
    board.reach("Capacity Ready", 140.0)
    board.pools["pool"].pods |= {"a", "b"}

    with View(board, Console(file=shown, force_terminal=True, width=120, height=40)):
        board.say("portal", "07:55")

    assert "Capacity Ready +40 s" in shown.getvalue()
    assert "2 without a node" in shown.getvalue()


@pytest.mark.parametrize(
    ("detail_type", "detail", "line"),
    [
        (
            "Capacity Requested",
            {"reference": "bio101", "pods": 40, "desired_before": 0, "desired_after": 3, "density": 14},
            "Capacity Requested  bio101: 40 pods; nodes 0 -> 3, 14 pods each",
        ),
        (
            "Signal Rejected",
            {"reference": "chem", "problems": [{"field": "pods", "problem": "is 'a few'"}]},
            "Signal Rejected  chem: pods is 'a few'",
        ),
        ("Pool Kept", {"pool": "pool"}, "Pool Kept  pool"),
    ],
)
def test_an_outcome_is_told_in_one_line(detail_type: str, detail: dict[str, Any], line: str) -> None:
    assert spoken(Heard(0.0, "firstbell", detail_type, detail)) == line


def test_the_clocks_begin_at_the_signal_and_at_the_unannounced_first_student() -> None:
    announced = PoolBoard("pool", "", pods={"a"}, running={"a"}, ready_at={"n1": 136.0, "n2": 138.0})
    twin = PoolBoard("twin", "", pods={"b"}, running={"b"}, ready_at={"m1": 200.0})
    heard = [Heard(101.0, "firstbell", "Signal Rejected", {}), Heard(139.0, "firstbell", "Capacity Ready", {})]
    evidence = Evidence(
        signalled=100.0,
        heard=[*heard, Heard(102.0, "someone.else", "Signal Rejected", {})],
        ready_before_class=True,
        announced=announced,
        twin=twin,
        pod_times={"a": PodTimes(150.0, 150.1), "b": PodTimes(150.0, 201.0), "other": PodTimes(1.0)},
        raises={"pool": [Raise(102.5, 12)], "twin": [Raise(160.0, 11), Raise(195.0, 12)]},
        disturbed=None,
    )

    ours, reactive = side(evidence, announced), side(evidence, twin)

    assert (ours.signal_to_desired_s, ours.signal_to_ready_s, ours.rejected_signals) == (2.5, 38.0, 1)
    assert (reactive.signal_to_desired_s, reactive.signal_to_ready_s, reactive.rejected_signals) == (45.0, 50.0, 0)
    assert (ours.pods_ever_pending_over_1s, reactive.pods_ever_pending_over_1s) == (0, 1)
    assert column(evidence, twin)["desired capacity raised"] == "10.00 s, 45.00 s"
    assert table(evidence).row_count == len(column(evidence, announced))
