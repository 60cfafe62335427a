"""Everything that may fail fails: conflicts, silence, refusals, poison."""

from __future__ import annotations

import pytest

from firstbell.capacity.drains import Phase
from firstbell.errors import AccessDenied, ClusterUnreachable, Conflict, RetryLater
from tests.functional.interruption.scene import Scene, T


def test_a_cordon_that_conflicts_is_read_again() -> None:
    """Case 26: the PATCH answers 409 twice."""
    scene = Scene()
    scene.faults.fail("cordon", Conflict("changed"), times=2)
    scene.spot()
    assert scene.invoke() == []
    assert scene.cluster.node_by_name["n1"].unschedulable
    assert len(scene.calls("node")) == 2


def test_a_cordon_that_always_fails_returns_the_record_and_no_drain_starts() -> None:
    """Case 26, its second run."""
    scene = Scene()
    scene.faults.fail("cordon", Conflict("changed"), times=1000)
    scene.spot()
    assert scene.invoke() == ["m1"]
    scene.now = T + 70
    scene.invoke()
    assert scene.evicted() == []
    assert scene.telemetry.total("CordonFailures") == 2
    scene.faults.clear()
    scene.run()
    assert scene.pods_left() == []


def test_the_lost_taint_of_another_writer_is_kept() -> None:
    """Case 26: taints are an atomic list."""
    from dataclasses import replace

    from firstbell.capacity.scheduling import Taint

    scene = Scene(pods=0)
    stale = scene.cluster.node_by_name["n1"]
    scene.cluster.add_node(replace(stale, taints=(Taint("dedicated", "user"),)))
    from firstbell.cluster.cordons import CordonMark
    from firstbell.interruption.cordon import cordoned

    cordoned(scene.cluster, stale, CordonMark("interruption", "spot", T))
    assert {taint.key for taint in scene.cluster.node_by_name["n1"].taints} == {
        "dedicated",
        "firstbell.dev/interruption",
    }


@pytest.mark.parametrize("error", [ClusterUnreachable("timeout"), AccessDenied("401 with a fresh token too")])
def test_a_silent_or_refusing_api_server_is_not_a_missing_node(error: Exception) -> None:
    """Case 62: the hook is not completed as success; the record comes back; access alarms."""
    scene = Scene()
    scene.faults.fail("nodes_of_instances", error, times=2)
    scene.terminate()
    assert scene.invoke() == ["m1"]
    assert scene.autoscaling.completed == []
    assert scene.telemetry.total("ClusterAccessDenied") == isinstance(error, AccessDenied)
    assert [m.visible_at for m in scene.queue.messages] == [T + 5]
    scene.run()
    assert len(scene.autoscaling.completed) == 1
    assert scene.pods_left() == []


def test_a_long_outage_never_reaches_the_dead_letter_queue() -> None:
    """maxReceiveCount is for what nobody expects: a retryable failure becomes a new message."""
    scene = Scene()
    scene.faults.fail("nodes_of_instances", ClusterUnreachable("timeout"), times=60)
    scene.terminate()
    receives = []
    while scene.queue.messages and scene.now < T + 3000:
        scene.run(until=scene.now + 1)
        receives += [m.receives for m in scene.queue.messages]
    assert max(receives) <= 3
    assert scene.pods_left() == []
    assert len(scene.autoscaling.completed) == 1


def test_an_outage_in_the_middle_of_a_drain_is_outlived() -> None:
    """Case 61 and 62: what happens to one pass happens to no other, and nothing is evicted twice."""
    scene = Scene(pods=3)
    scene.spot()
    scene.invoke()
    scene.faults.fail("pods_on_node", ClusterUnreachable("500"), times=5)
    scene.run()
    assert scene.pods_left() == []
    assert len(scene.evicted()) == 3
    assert scene.settled_at < T + 60


@pytest.mark.parametrize("call", ["read", "describe", "write", "send", "lifecycle_hooks"])
def test_what_the_batch_cannot_do_without_returns_it_whole(call: str) -> None:
    scene = Scene()
    scene.faults.fail(call, RetryLater("throttled"))
    scene.terminate()
    with pytest.raises(RetryLater):
        scene.invoke()
    scene.run()
    assert scene.pods_left() == []
    assert len(scene.autoscaling.completed) == 1
    assert scene.queue.messages == []


def test_a_throttled_ledger_after_the_work_only_repeats_it() -> None:
    scene = Scene()
    scene.faults.fail("write", RetryLater("throttled"), nth=2)
    scene.spot()
    assert scene.invoke() == ["m1"]
    scene.run()
    assert scene.pods_left() == []
    assert len(scene.evicted()) == 2
    assert scene.queue.messages == []


def test_one_instances_trouble_is_not_its_neighbours() -> None:
    """Case 65: of ten records only the failed one is returned."""
    scene = Scene(nodes=9, pods=1)
    scene.spot(*(f"i-0{n}" for n in range(1, 10)))
    scene.faults.fail("cordon", ZeroDivisionError("a fault of ours"), nth=3)
    assert scene.invoke() == ["m3"]
    scene.run()
    assert scene.pods_left() == []
    assert scene.queue.messages == []


def test_all_failed_returns_all() -> None:
    """Case 65."""
    scene = Scene(nodes=3)
    scene.faults.fail("nodes_of_instances", ClusterUnreachable("timeout"))
    scene.spot("i-01", "i-02", "i-03")
    assert scene.invoke() == ["m1", "m2", "m3"]


def test_a_lost_ledger_is_survived() -> None:
    """The continuation message carries what the drain goes on with."""
    scene = Scene(pods=2)
    scene.spot()
    scene.invoke()
    scene.ledger.lose("i-01")
    scene.run()
    assert scene.pods_left() == []
    assert scene.drain().phase is Phase.DONE
    assert scene.drain().deadline == T + 120


def test_a_ledger_lost_during_a_pass_is_survived() -> None:
    scene = Scene(pods=2)
    scene.spot()
    scene.invoke()
    scene.now = T + 3
    original = scene.cluster.pods_on_node

    def losing(name: str) -> object:
        scene.ledger.lose("i-01")
        scene.cluster.pods_on_node = original  # type: ignore[method-assign]
        return original(name)

    scene.cluster.pods_on_node = losing  # type: ignore[method-assign,assignment]
    scene.run()
    assert scene.pods_left() == []
    assert scene.queue.messages == []


def test_a_queue_that_cannot_hide_messages_only_makes_retries_later() -> None:
    scene = Scene()
    scene.faults.fail("hide", RetryLater("sqs"), times=100)
    scene.spot()
    scene.run()
    assert scene.pods_left() == []


def test_a_pool_taken_out_of_the_file_ends_its_drains() -> None:
    from dataclasses import replace

    scene = Scene()
    scene.spot()
    scene.invoke()
    scene.settings = replace(scene.settings, pools=(replace(scene.pool, name="other", group="other"),))
    scene.run()
    assert scene.queue.messages == []
    assert scene.evicted() == []


def test_evictions_without_an_answer_are_looked_at_again() -> None:
    from firstbell.cluster.evictions import Eviction, EvictionResult

    scene = Scene(pods=1)
    scene.cluster.results["u-nb-1-1"] = Eviction(EvictionResult.UNKNOWN, "read timed out")
    scene.spot()
    scene.run(until=T + 4)
    scene.cluster.results.clear()
    scene.run()
    assert scene.pods_left() == []
