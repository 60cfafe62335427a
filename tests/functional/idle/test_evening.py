"""From the last lesson to zero: the real evaluation over fakes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstbell.capacity.budgets import Budget
from firstbell.cluster.evictions import Eviction, EvictionResult
from firstbell.errors import AccessDenied, ClusterUnreachable, RetryLater
from firstbell.outcomes import rfc3339
from tests.fakes.school import MINUTE, PLACES
from tests.functional.idle.evening import HOUR, NEXT_MORNING, NOON, QUIET, SEVEN_PM, Evening, quiet_pool

KUBE_DNS = Budget("kube-system", {"k8s-app": "kube-dns"})


def test_idle_nodes_go_in_two_looks_once_it_is_quiet_and_the_pool_comes_to_zero() -> None:
    school = Evening()
    school.with_nodes(3)
    school.until(SEVEN_PM)
    assert not school.written()
    school.rounds(1)
    assert school.written() == ["cordon"] * 3
    assert len(school.marked()) == 3
    school.rounds(1)
    assert school.written()[3:] == ["terminate_with_decrement"] * 3
    assert school.desired() == 0
    school.rounds(3)
    [zero] = school.said("Pool Scaled To Zero")
    assert (zero["pool"], zero["nodes_removed"], zero["rule"]) == ("notebook", 3, "quiet")
    assert zero["seconds_since_cause"] == 10 * MINUTE
    assert len(school.written()) == 6
    assert not school.said("Pool Kept")


def test_while_it_is_up_nothing_goes_however_idle_it_is() -> None:
    school = Evening(now=NOON)
    school.with_nodes(3)
    school.until(NOON + 2 * HOUR)
    assert not school.written()
    assert school.telemetry.total("NodesIdle") > 0


def test_a_node_has_to_be_without_user_pods_for_a_while_before_it_is_cordoned() -> None:
    school = Evening(now=SEVEN_PM)
    [name] = school.with_nodes(1)
    student = school.seat(name)
    school.rounds(2)
    school.cluster.finish(student.uid)
    school.rounds(3)
    assert not school.written()
    school.rounds(1)
    assert school.written() == ["cordon"]


def test_a_straggler_keeps_her_node_and_is_named_and_the_others_go() -> None:
    school = Evening()
    first, *_ = school.with_nodes(3)
    student = school.seat(first)
    school.until(SEVEN_PM + HOUR)
    assert school.nodes() == {first}
    assert not school.lost
    kept = school.said("Pool Kept")
    assert [node["node"] for node in kept[-1]["nodes"]] == [first]
    assert kept[-1]["nodes"][0]["reason"] == "busy"
    assert kept[-1]["nodes"][0]["pods"] == [
        {"pod": f"hub/{student.name}", "why": "user pod, bare: nothing would make it again"}
    ]
    school.cluster.finish(student.uid)
    school.until(SEVEN_PM + 2 * HOUR)
    assert not school.nodes()
    assert len(school.said("Pool Scaled To Zero")) == 1


def test_the_same_is_said_once() -> None:
    school = Evening(now=SEVEN_PM)
    school.seat(school.with_nodes(1)[0])
    school.rounds(6)
    assert len(school.said("Pool Kept")) == 1
    school.seat(next(iter(school.nodes())))
    school.rounds(2)
    assert len(school.said("Pool Kept")) == 2
    assert len({event["outcome_id"] for event in school.said("Pool Kept")}) == 2


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"owner_kind": "Job"}, id="running Job"),
        pytest.param({"terminating": True, "deletion_at": SEVEN_PM + 10 * HOUR}, id="terminating with grace left"),
        pytest.param({"safe_to_evict": False, "owner_kind": "StatefulSet"}, id="case 52: safe-to-evict false"),
        pytest.param({"labels": {"app": "jupyterhub", "component": "hub"}, "owner_kind": "ReplicaSet"}, id="the hub"),
    ],
)
def test_a_node_stays_for(changes: dict[str, Any]) -> None:
    school = Evening()
    [name] = school.with_nodes(1)
    school.seat(name, **changes)
    school.until(SEVEN_PM + HOUR)
    assert school.nodes() == {name}
    assert not school.written()


def test_case_54_finished_pods_hold_nothing() -> None:
    school = Evening()
    [name] = school.with_nodes(1)
    school.seat(name, finished=True)
    school.until(SEVEN_PM + HOUR)
    assert not school.nodes()


@pytest.mark.parametrize("gap", ["cordon", "node", "pods_on_node", "nodes", "ledger.finish"])
def test_case_51_a_pod_that_is_bound_around_the_cordon_gets_its_node_back(gap: str) -> None:
    """A pod is bound just before the call `gap` of the first look, or the last such call before the second."""
    school = Evening(now=SEVEN_PM)
    [name] = school.with_nodes(1)
    school.rounds(3)
    school.faults.once_before(gap, lambda: school.seat(name))
    school.rounds(4)
    assert len(school.cluster.pod_by_uid) == 1
    assert school.nodes() == {name}
    assert not school.marked()
    assert not school.cluster.node_by_name[name].unschedulable
    assert "terminate_with_decrement" not in school.written()


@pytest.mark.parametrize("gap", ["ledger.read", "describe", "node", "pods_on_node"])
def test_case_51_a_pod_that_came_in_spite_of_the_cordon_is_seen_right_before_the_end(gap: str) -> None:
    """Somebody opened the node by hand, or the pod tolerates everything: the survey of the second look is too old."""
    school = Evening(now=SEVEN_PM)
    [name] = school.with_nodes(1)
    school.rounds(4)
    assert school.marked() == {name}
    school.faults.once_before("budgets", lambda: school.faults.once_before(gap, lambda: school.seat(name)))
    school.idle()
    assert "terminate_with_decrement" not in school.written()
    assert not school.marked()


def test_only_that_instance_is_ended_and_desired_is_never_written() -> None:
    """Case 36: five nodes, four of them with students."""
    school = Evening()
    names = school.with_nodes(5)
    for name in names[1:]:
        school.seat(name)
    school.until(SEVEN_PM + HOUR)
    assert school.nodes() == set(names[1:])
    assert school.written() == ["cordon", "terminate_with_decrement"]
    assert school.desired() == 4


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        ({"zones": ("us-west-2a", "us-west-2b")}, "AZRebalance"),
        ({"refreshing": True}, "instance refresh"),
        ({"protected": True}, "scale-in protection"),
    ],
)
def test_what_the_group_is_set_to_is_respected_and_named(group: dict[str, Any], reason: str) -> None:
    school = Evening()
    names = school.with_nodes(2)
    if "zones" in group:
        school.change_group(zones=group["zones"])
    if "refreshing" in group:
        school.autoscaling.refreshing.add("asg-notebook")
    if "protected" in group:
        ids = [name.removeprefix("node-") for name in names]
        school.autoscaling.set_protection("asg-notebook", ids, protected=True)
        school.faults.calls.clear()
    school.until(SEVEN_PM + HOUR)
    assert not school.written()
    [kept] = school.said("Pool Kept")
    assert {node["reason"] for node in kept["nodes"]} == {reason}


def test_a_group_that_auto_scaling_is_shrinking_itself_is_left_alone() -> None:
    school = Evening()
    school.with_nodes(3)
    school.change_group(desired=2)
    school.until(SEVEN_PM + HOUR)
    assert not school.written()


def test_an_instance_that_never_joined_is_named_and_not_taken_for_idle() -> None:
    school = Evening()
    school.change_group(desired=1)
    [instance_id] = school.launch()
    school.until(SEVEN_PM + HOUR)
    [kept] = school.said("Pool Kept")
    assert [(n["instance_id"], n["node"], n["reason"]) for n in kept["nodes"]] == [(instance_id, "", "no node")]
    assert not school.written()


def test_a_pool_whose_group_other_tools_also_own_nodes_of_loses_only_its_members() -> None:
    """A node that is no member of the group, such as Karpenter's, is nobody's to remove."""
    school = Evening()
    [name] = school.with_nodes(1)
    foreign = replace(school.cluster.node_by_name[name], name="karpenter-1", instance_id="i-karpenter")
    school.cluster.add_node(foreign)
    for _ in range(16):
        school.idle()
        school.minutes(5)
    touched = {call.args[0] for call in school.faults.calls if call.name in ("cordon", "terminate_with_decrement")}
    assert touched == {name, name.removeprefix("node-")}


# reservations


def test_what_a_live_reservation_needs_stays() -> None:
    school = Evening()
    school.with_nodes(4)
    school.deliver(school.signal(2 * PLACES, hold_minutes=180))
    school.tick()
    school.until(SEVEN_PM + HOUR)
    assert len(school.nodes()) == 2
    assert school.desired() == 2
    [*_, kept] = school.said("Pool Kept")
    assert {node["reason"] for node in kept["nodes"]} == {"needed"}
    school.tick()
    assert school.desired() == 2
    assert not school.telemetry.total("OtherWriterUndone")


def test_a_reservation_that_is_due_soon_keeps_what_it_needs_and_a_late_one_does_not() -> None:
    soon, late = Evening(), Evening()
    for school, hours in ((soon, 0.5), (late, 6)):
        school.with_nodes(2)
        school.deliver(school.signal(PLACES, starts_at=rfc3339(SEVEN_PM + hours * HOUR)))
        school.until(SEVEN_PM + 30 * MINUTE)
    assert len(soon.nodes()) == 1
    assert not late.nodes()


def test_a_signal_that_comes_while_the_lease_is_ours_is_served_by_us_at_once() -> None:
    school = Evening(now=SEVEN_PM)
    school.with_nodes(3)
    school.rounds(4)
    assert len(school.marked()) == 3
    school.faults.once_before("pods_on_node", lambda: school.deliver(school.signal(2 * PLACES)))
    school.idle()
    school.sweep()
    assert len(school.nodes()) == 2
    assert not school.marked()
    assert school.desired() == 2
    assert [e["reference"] for e in school.said("Capacity Requested")] == ["bio101"]


def test_a_student_who_waits_keeps_the_node_that_would_take_her() -> None:
    school = Evening(now=SEVEN_PM)
    school.with_nodes(2)
    school.rounds(4)
    school.student()
    school.rounds(1)
    assert len(school.marked()) == 0 or len(school.nodes()) == 1
    school.tick()
    assert school.schedule() == 0
    assert not school.lost


# the brakes


@pytest.mark.parametrize("brake", ["observe", "pause"])
def test_the_brakes_are_honoured(brake: str) -> None:
    school = Evening(pools=(quiet_pool(mode="observe" if brake == "observe" else "act"),))
    school.with_nodes(2)
    school.change_group(min_size=1)
    if brake == "pause":
        school.ledger.pause("ops", school.now)
    school.until(SEVEN_PM + HOUR)
    assert not school.written()
    if brake == "observe":
        [*_, kept] = school.said("Pool Kept")
        assert (kept["mode"], {n["reason"] for n in kept["nodes"]}) == ("observe", {"idle"})


def test_a_pause_between_the_looks_stops_the_second() -> None:
    school = Evening(now=SEVEN_PM)
    school.with_nodes(2)
    school.rounds(4)
    school.ledger.pause("ops", school.now)
    school.rounds(3)
    assert len(school.nodes()) == 2
    school.ledger.resume()
    school.rounds(1)
    assert not school.nodes()


# errors


@pytest.mark.parametrize("error", [ClusterUnreachable("timeout"), AccessDenied("403")])
@pytest.mark.parametrize("call", ["nodes", "pods", "budgets", "pods_on_node"])
def test_an_error_is_never_read_as_no_pods(error: Exception, call: str) -> None:
    school = Evening(now=SEVEN_PM)
    first, *_ = school.with_nodes(2)
    school.seat(first)
    school.rounds(4)
    school.faults.fail(call, error)
    with pytest.raises(type(error)):
        school.idle()
    assert "terminate_with_decrement" not in school.written()
    school.rounds(2)
    assert school.nodes() == {first}


def test_a_pool_that_fails_does_not_keep_the_others_from_theirs() -> None:
    unknown = replace(QUIET, timezone="Europe/Berln")
    school = Evening(pools=(quiet_pool("broken", idle=unknown), quiet_pool("notebook")))
    school.with_nodes(1, "broken")
    school.with_nodes(1)
    for _ in range(12):
        with pytest.raises(Exception, match="Berln"):
            school.rounds(1)
        school.sweep()
        school.now += 5 * MINUTE
    assert (school.desired("broken"), school.desired()) == (1, 0)


def test_auto_scaling_that_is_busy_is_asked_again_at_the_next_evaluation() -> None:
    school = Evening(now=SEVEN_PM)
    school.with_nodes(2)
    school.rounds(4)
    school.faults.fail("terminate_with_decrement", RetryLater("ScalingActivityInProgress"))
    with pytest.raises(RetryLater):
        school.idle()
    assert len(school.nodes()) == 2
    school.now += 5 * MINUTE
    school.rounds(1)
    assert not school.nodes()


def test_a_run_that_has_little_time_left_begins_nothing_more() -> None:
    school = Evening(now=SEVEN_PM)
    school.with_nodes(2)
    school.rounds(3)
    school.idle(seconds_left=10)
    assert not school.written()


def test_a_pool_in_other_hands_is_left_for_the_next_evaluation() -> None:
    school = Evening(now=SEVEN_PM)
    school.with_nodes(1)
    school.rounds(3)
    assert school.ledger.lease("notebook", "tick", school.now, changed=False)
    school.idle()
    assert not school.written()


# system pods


def test_case_52_system_pods_with_a_budget_move_out_first() -> None:
    school = Evening(pools=(quiet_pool(), replace(quiet_pool("system", idle=None), taints=())))
    first, second = school.with_nodes(2)
    school.with_nodes(1, "system")
    coredns = school.system_pod(first)
    school.cluster.budget_list = [KUBE_DNS]
    open_node = next(n for n in school.cluster.node_by_name.values() if n.name not in (first, second))
    school.cluster.add_node(replace(open_node, taints=()))
    school.until(SEVEN_PM)
    school.rounds(1)
    assert school.written() == ["cordon", "cordon", "evict"]
    assert coredns.uid not in school.cluster.pod_by_uid
    school.rounds(1)
    assert not {first, second} & school.nodes()


def test_a_budget_that_allows_nothing_now_keeps_the_node_until_it_does() -> None:
    school = Evening(pools=(quiet_pool(), replace(quiet_pool("system", idle=None), taints=())))
    [first] = school.with_nodes(1)
    [home] = school.with_nodes(1, "system")
    school.cluster.add_node(replace(school.cluster.node_by_name[home], taints=()))
    coredns = school.system_pod(first)
    school.cluster.budget_list = [KUBE_DNS]
    school.cluster.results[coredns.uid] = Eviction(EvictionResult.BUDGET)
    school.until(SEVEN_PM + HOUR)
    assert first in school.nodes()
    assert coredns.uid in school.cluster.pod_by_uid
    del school.cluster.results[coredns.uid]
    school.rounds(2)
    assert first not in school.nodes()
    assert not school.lost


def test_a_system_pod_without_a_budget_keeps_its_node_while_the_cluster_is_used() -> None:
    school = Evening()
    first, second = school.with_nodes(2)
    school.system_pod(first)
    student = school.seat(second)
    school.until(SEVEN_PM + HOUR)
    assert school.nodes() == {first, second}
    [*_, kept] = school.said("Pool Kept")
    held = {n["node"]: (n["reason"], [p["pod"] for p in n["pods"]]) for n in kept["nodes"]}
    assert held[first] == ("blocked", ["kube-system/coredns-1"])
    blocked = [value for name, value, _ in school.telemetry.values if name == "IdleBlockedSeconds"]
    assert blocked[-1] >= 40 * MINUTE
    school.cluster.finish(student.uid)
    school.until(SEVEN_PM + 2 * HOUR)
    assert not school.nodes()  # at the very end nothing is left to hold them
    assert "evict" not in school.written()


def test_the_last_node_of_a_cluster_that_somebody_will_soon_use_keeps_its_system_pods() -> None:
    school = Evening(pools=(quiet_pool(), quiet_pool("spare")))
    [first] = school.with_nodes(1)
    school.system_pod(first)
    school.deliver(school.signal(PLACES, pool="spare", starts_at=rfc3339(SEVEN_PM + 40 * MINUTE)))
    school.until(SEVEN_PM + 20 * MINUTE)
    assert first in school.nodes()


# savings


def test_node_hours_are_measured_from_removals_and_belong_to_the_day() -> None:
    school = Evening()
    school.with_nodes(2)
    school.until(SEVEN_PM + 70 * MINUTE)
    assert school.telemetry.total("NodesRemoved") == 2
    assert school.telemetry.total("NodeHoursRemoved") == pytest.approx(2.0)
    memory = school.memory()
    assert memory.day_nodes == 2
    assert memory.day_node_hours == pytest.approx(2.0)
    school.until(NEXT_MORNING + 5 * MINUTE)
    saved = school.telemetry.total("NodeHoursRemoved")
    assert saved == pytest.approx(2 * 11 + 2 * 55 / 60, abs=0.2)
    school.until(NEXT_MORNING + 2 * HOUR)
    assert school.telemetry.total("NodeHoursRemoved") == saved
    assert school.memory().day_nodes == 0


def test_nothing_is_saved_by_a_node_that_was_replaced() -> None:
    school = Evening()
    school.with_nodes(1)
    school.until(SEVEN_PM + 10 * MINUTE)
    school.deliver(school.signal(PLACES, hold_minutes=600))
    school.grow()
    school.until(SEVEN_PM + 3 * HOUR)
    assert school.telemetry.total("NodeHoursRemoved") < 0.2
