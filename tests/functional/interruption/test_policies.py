"""Kinds whose answer is the operator's choice: recommendations, scheduled changes, reservations, drills."""

from __future__ import annotations

import json
from typing import Any

from firstbell.capacity.changes import due, enqueued
from firstbell.capacity.drains import Phase
from firstbell.capacity.pools import InterruptionPolicy
from firstbell.cluster.cordons import mark_of
from firstbell.outcomes import rfc3339
from tests.functional.interruption.scene import Scene, T, pod


def test_a_recommendation_is_only_counted_by_default() -> None:
    """Case 7: it says no more than that an interruption has become likelier."""
    scene = Scene()
    scene.rebalance()
    assert scene.invoke() == []
    assert scene.faults.calls == []


def test_a_recommendation_may_cordon_for_a_while_under_our_own_mark() -> None:
    """Case 7: tick takes it back when nothing followed; nothing is evicted."""
    scene = Scene(policy=InterruptionPolicy(rebalance="cordon", rebalance_ttl_minutes=30))
    scene.rebalance()
    scene.run()
    mark = mark_of(scene.cluster.node_by_name["n1"], "interruption")
    assert mark is not None
    assert (mark.kind, mark.since, mark.deadline) == ("rebalance", T, T + 1800)
    assert scene.evicted() == []
    assert scene.calls("write") == []
    assert scene.queue.messages == []
    [held] = scene.ledger.remembered().held
    assert (held.instance_id, held.node, held.until) == ("i-01", "n1", T + 1800)


def test_a_notice_after_a_recommendation_makes_its_cordon_a_drain() -> None:
    scene = Scene(policy=InterruptionPolicy(rebalance="cordon"))
    scene.rebalance()
    scene.run()
    scene.spot()
    scene.run()
    mark = mark_of(scene.cluster.node_by_name["n1"], "interruption")
    assert mark is not None
    assert mark.kind == "spot"
    assert scene.pods_left() == []


def test_a_late_recommendation_does_not_weaken_a_drain() -> None:
    scene = Scene(policy=InterruptionPolicy(rebalance="cordon"))
    scene.spot()
    scene.invoke()
    scene.rebalance()
    scene.run()
    mark = mark_of(scene.cluster.node_by_name["n1"], "interruption")
    assert mark is not None
    assert mark.kind == "spot"


def test_a_recommendation_may_drain_but_forces_nothing_before_its_time() -> None:
    scene = Scene(policy=InterruptionPolicy(rebalance="drain", at_deadline="leave", rebalance_ttl_minutes=5))
    scene.cluster.budget_blocked.add("u-nb-1-1")
    scene.rebalance()
    scene.run()
    assert scene.calls("delete_pod") == []
    assert scene.said("Drain Incomplete")[0]["pods"][0]["pod"] == "class/nb-1-1"


def test_a_recommendation_that_cannot_cordon_comes_back() -> None:
    from firstbell.errors import Conflict

    scene = Scene(policy=InterruptionPolicy(rebalance="cordon"))
    scene.faults.fail("cordon", Conflict("busy"), times=5)
    scene.rebalance()
    assert scene.invoke() == ["m1"]
    scene.run()
    assert mark_of(scene.cluster.node_by_name["n1"], "interruption") is not None


def test_a_spot_notice_may_be_observed_or_only_cordoned() -> None:
    scene = Scene(policy=InterruptionPolicy(spot="observe"))
    scene.spot()
    scene.run()
    assert scene.ignored("spot_observed") == 1
    assert not scene.cluster.node_by_name["n1"].unschedulable
    scene = Scene(policy=InterruptionPolicy(spot="cordon"))
    scene.spot()
    scene.run()
    assert scene.cluster.node_by_name["n1"].unschedulable
    assert scene.evicted() == []


def health(scene: Scene, *instance_ids: str, starts_in: float = 7200, **detail: Any) -> None:
    scene.put(
        "AWS Health Event",
        {
            "eventArn": "arn:aws:health:us-west-2::event/EC2/AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED/made-up",
            "service": "EC2",
            "eventTypeCategory": "scheduledChange",
            "communicationId": "c1-1",
            "startTime": rfc3339(scene.now + starts_in),
            "lastUpdatedTime": rfc3339(scene.now),
            "statusCode": "upcoming",
            "affectedEntities": [{"entityValue": i, "status": "PENDING"} for i in instance_ids],
        }
        | detail,
        source="aws.health",
    )


def test_a_scheduled_change_is_kept_until_its_time_and_then_drained() -> None:
    scene = Scene(nodes=2, policy=InterruptionPolicy(before_minutes=60))
    health(scene, "i-01", "i-02", "i-0f")
    scene.run()
    assert scene.calls("cordon") == []
    [change] = scene.ledger.change_by_arn.values()
    assert change.instances == {"notebook": ["i-01", "i-02"]}
    assert due([change], [scene.pool], T + 3599) == []
    scene.now = T + 3600
    [ready] = due([change], [scene.pool], scene.now)
    scene.queue.put(ready.body)
    scene.ledger.write_change(enqueued(change, ready.pool))
    scene.run()
    assert scene.pods_left() == []
    assert {one["kind"] for one in scene.said("Node Drained")} == {"scheduled-change"}


def test_a_scheduled_change_that_is_near_is_drained_at_once() -> None:
    scene = Scene()
    health(scene, "i-01", starts_in=1800)
    scene.run()
    assert scene.pods_left() == []
    assert scene.ledger.change_by_arn == {}


def test_a_withdrawn_change_drains_nothing() -> None:
    scene = Scene()
    health(scene, "i-01")
    scene.run()
    health(scene, "i-01", statusCode="closed", communicationId="c2-1", lastUpdatedTime=rfc3339(T + 60))
    scene.run()
    [change] = scene.ledger.change_by_arn.values()
    assert due([change], [scene.pool], T + 7000) == []


def test_a_capacity_block_drains_the_instances_that_it_holds() -> None:
    scene = Scene(nodes=2)
    scene.reservations["cr-0aa"] = ["i-02", "i-0f"]
    scene.put(
        "Capacity Block Reservation Expiration Warning",
        {"capacity-reservation-id": "cr-0aa", "end-date": rfc3339(T + 2400)},
    )
    scene.run()
    assert scene.pods_left() == ["nb-1-1", "nb-1-2"]
    assert scene.drain("i-02").deadline == T + 600
    assert scene.ignored("foreign_or_gone") == 1


def test_an_interrupted_capacity_reservation_is_drained_by_its_own_time() -> None:
    scene = Scene()
    detail = {"instance-id": "i-01", "instance-action": "terminate", "instance-termination-time": rfc3339(T + 90)}
    scene.put("EC2 Capacity Reservation Instance Interruption Warning", detail)
    scene.run()
    assert scene.drain().deadline == T + 90
    assert scene.pods_left() == []


def test_a_drill_goes_the_same_way_but_changes_no_group() -> None:
    scene = Scene(nodes=2)
    scene.drill("spot", "i-01", "i-02")
    scene.run()
    assert scene.pods_left() == []
    assert scene.calls("detach", "complete_lifecycle_action") == []
    assert [one["drill"] for one in scene.said("Node Drained")] == [True, True]
    mark = mark_of(scene.cluster.node_by_name["n1"], "interruption")
    assert mark is not None
    assert mark.kind == "drill"
    held = {one.node for one in scene.ledger.remembered().held}
    assert held == {"n1", "n2"}, "tick gives them back: nothing takes them away"


def test_a_drill_of_many_instances_is_one_message_and_many_drains() -> None:
    scene = Scene(nodes=9)
    scene.drill("terminate", *(f"i-0{n}" for n in range(1, 10)))
    scene.invoke()
    assert len(scene.calls("cordon")) == 9
    assert len(scene.queue.messages) == 9
    scene.run()
    assert all(scene.drain(f"i-0{n}").phase is Phase.DONE for n in range(1, 10))


def test_a_real_notice_takes_a_drill_over() -> None:
    scene = Scene(pods=1)
    scene.cluster.lingering.add("u-nb-1-1")
    scene.drill("spot")
    scene.run(until=T + 5)
    scene.terminate()
    scene.run(until=T + 300)
    assert not scene.drain().drill
    scene.cluster.finish("u-nb-1-1")
    scene.run()
    assert len(scene.autoscaling.completed) == 1


def test_tolerating_everything_keeps_no_drain_going() -> None:
    from firstbell.capacity.scheduling import Toleration

    scene = Scene(pods=1)
    scene.spot()
    scene.invoke()
    scene.cluster.add_pod(pod("came-back", created_at=T + 2, tolerations=(Toleration(operator="Exists"),)))
    scene.run()
    assert scene.pods_left() == ["came-back"]
    assert len(scene.said("Node Drained")) == 1


def test_unknown_and_unreadable_messages_never_stop_the_others() -> None:
    scene = Scene()
    scene.queue.put("not json")
    scene.queue.put(json.dumps({"source": "example", "detail-type": "X", "detail": {}}))
    scene.spot()
    assert scene.invoke() == []
    assert scene.cluster.node_by_name["n1"].unschedulable
