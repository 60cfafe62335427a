"""Replacement at the notice, as far as it is done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstbell.capacity.pools import InterruptionPolicy
from firstbell.capacity.reservations import Reservation
from firstbell.cloud.refusals import Refused
from firstbell.errors import Conflict, RetryLater
from tests.functional.interruption.scene import GROUP, POD, Scene, T


def detached(scene: Scene) -> list[tuple[list[str], bool]]:
    return [(list(call[2]), call[3]) for call in scene.calls("detach")]


def full(doomed: int, **options: Any) -> Scene:
    """Every node full: twenty pods of which fifteen fit by memory."""
    return Scene(nodes=doomed, pods=15, **options)


def test_a_full_pools_doomed_instance_is_replaced_before_its_pods_go() -> None:
    scene = full(2)
    scene.spot()
    scene.run(until=T + 4)
    assert detached(scene) == [(["i-01"], False)]
    names = [call.name for call in scene.faults.calls]
    assert names.index("detach") < names.index("evict")
    assert names.index("remember_detached") < names.index("detach")
    group = scene.autoscaling.groups[GROUP]
    assert (group.desired, group.unlaunched_units) == (2, 1)
    assert [one.instance_id for one in scene.ledger.remembered().detached] == ["i-01"]
    assert scene.drain().replacement == "replaced"


def test_where_the_headroom_suffices_the_group_gets_smaller() -> None:
    scene = Scene(nodes=3, pods=2)
    scene.spot()
    scene.run()
    assert detached(scene) == [(["i-01"], True)]
    assert scene.autoscaling.groups[GROUP].desired == 2
    assert [call[0] for call in scene.calls("ledger.lease", "ledger.abandon")] == ["ledger.lease", "ledger.abandon"]
    assert scene.telemetry.total("InstancesReleased") == 1


def test_the_minimum_holds() -> None:
    scene = Scene(nodes=3, pods=2, group_options={"min_size": 3})
    scene.spot()
    scene.run()
    assert detached(scene) == [(["i-01"], False)]


def test_a_storm_is_detached_in_twenties() -> None:
    scene = full(9)
    scene.spot(*(f"i-0{n}" for n in range(1, 10)))
    scene.run(until=T + 4)
    assert detached(scene) == [([f"i-0{n}" for n in range(1, 10)], False)]
    assert len(scene.calls("pods")) == 1


def test_it_is_decided_once() -> None:
    scene = full(2)
    scene.cluster.budget_blocked.add("u-nb-1-1")
    scene.spot()
    scene.run()
    assert len(detached(scene)) == 1
    assert len(scene.calls("pods")) == 1


def test_nothing_is_let_go_while_a_class_is_announced() -> None:
    scene = Scene(nodes=3, pods=0)
    scene.reservation_ledger.reservations["bio101"] = Reservation(
        "bio101", "notebook", 30, POD, T - 60, T + 3600, T - 60, T - 60, "portal"
    )
    scene.spot()
    scene.run()
    assert detached(scene) == [(["i-01"], False)]


def test_a_pool_that_is_being_sized_is_left_to_its_holder() -> None:
    """And decided in a later pass, once its lease is free."""
    scene = full(2)
    scene.cluster.budget_blocked.add("u-nb-1-1")
    lease = scene.reservation_ledger.lease("notebook", "somebody", T, changed=False)
    assert lease is not None
    scene.spot()
    scene.run(until=T + 5)
    assert detached(scene) == []
    scene.reservation_ledger.abandon(lease)
    scene.run()
    assert [ids for ids, _ in detached(scene)] == [["i-01"]]


def test_of_a_storms_invocations_one_decides_for_all() -> None:
    scene = full(3)
    scene.spot("i-01", "i-02", "i-03")
    scene.invoke()
    scene.now = T + 3
    for _ in range(3):
        scene.invoke(most=1)
    assert detached(scene) == [(["i-01", "i-02", "i-03"], False)]
    assert len(scene.calls("pods")) == 1
    decided = sorted(scene.drain(f"i-0{n}").replacement for n in (1, 2, 3))
    assert decided[2] == "replaced"
    assert all(why.startswith("left: not InService any more") for why in decided[:2])
    assert sorted(one.instance_id for one in scene.ledger.remembered().detached) == ["i-01", "i-02", "i-03"]


@pytest.mark.parametrize(
    ("pool", "group"),
    [
        ({}, {"capacity_rebalance": True}),
        ({}, {"suspended": frozenset({"Launch"})}),
        ({"mode": "observe"}, {}),
    ],
)
def test_a_group_that_is_not_ours_to_replace_in_is_left_alone(pool: dict[str, Any], group: dict[str, Any]) -> None:
    scene = full(2, pool_options=pool, group_options=group)
    scene.spot()
    scene.run()
    assert detached(scene) == []
    assert scene.ledger.remembered().detached == []


@pytest.mark.parametrize("notice", ["drill", "terminate", "state"])
def test_only_a_real_spot_notice_replaces(notice: str) -> None:
    scene = full(2)
    match notice:
        case "drill":
            scene.drill("spot")
        case "terminate":
            scene.terminate()
        case _:
            scene.state("shutting-down")
    scene.run()
    assert detached(scene) == []


@pytest.mark.parametrize("error", [RetryLater("throttled"), Refused("autoscaling:DetachInstances", "X", "no")])
def test_a_replacement_that_fails_holds_up_no_eviction(error: Exception) -> None:
    scene = Scene(nodes=1, pods=2)
    scene.faults.fail("detach", error, times=9)
    scene.spot()
    scene.run()
    assert scene.pods_left() == []


def test_a_throttled_detach_is_tried_again_in_the_next_pass() -> None:
    """The pods, bare ones as notebooks are, have been evicted by then and are ending."""
    scene = full(2)
    for one in list(scene.cluster.pod_by_uid.values()):
        scene.cluster.add_pod(replace(one, owner_kind=""))
        scene.cluster.lingering.add(one.uid)
    scene.faults.fail("detach", RetryLater("throttled"))
    scene.spot()
    scene.run(until=T + 10)
    assert scene.drain().replacement == "replaced"


def test_an_instance_that_left_its_group_meanwhile_is_no_trouble() -> None:
    scene = full(2)
    scene.faults.fail("detach", Conflict("not InService"))
    scene.spot()
    scene.run()
    assert scene.pods_left() == [f"nb-2-{n}" for n in sorted(range(1, 16), key=str)]


def test_a_late_notice_leaves_the_replacement_to_the_group() -> None:
    scene = full(2)
    scene.spot()
    scene.now = T + 95
    scene.run()
    assert detached(scene) == []
    assert scene.drain().replacement.startswith("left: too late")


def test_stateful_pods_on_spot_alarm() -> None:
    scene = full(1, pool_options={"stateful": True})
    scene.spot()
    scene.run()
    assert scene.telemetry.total("StatefulOnSpot") == 1


def test_the_hook_of_a_detached_instance_is_still_answered() -> None:
    scene = full(2, policy=InterruptionPolicy())
    scene.spot()
    scene.run(until=T + 4)
    scene.autoscaling.active_actions.add((GROUP, "firstbell-drain", "i-01"))
    scene.hook_notice("i-01")
    scene.run()
    assert len(scene.autoscaling.completed) == 1
