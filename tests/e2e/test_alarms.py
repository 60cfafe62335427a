"""A morning on which everything goes wrong: what each alarm is about happens, and its metric is there to be seen."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import urllib3

from localcloud.clients import aws_client
from localcloud.deploy import apply_manifest
from tests.e2e.cluster_api import Document, await_value
from tests.e2e.deployed import NAMESPACE, ROOT, Deployed
from tests.e2e.watching import Watch

pytestmark = pytest.mark.disruptive
ROLES = "/apis/rbac.authorization.k8s.io/v1"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SPOT_POOLS = ("fragile", "patient")
NO_CAPACITY = "InsufficientInstanceCapacity"
NO_VCPUS = "VcpuLimitExceeded"
RETRY_SECONDS = 60
"""The fleet tries a launch again after a boot time; each failure is an event that runs the tick."""


@pytest.fixture(scope="module")
def watch(school: Deployed) -> Iterator[Watch]:
    """From before anything goes wrong. Launches of two pools fail, a class is announced, a student waits."""
    watch = Watch(school.cloud)
    for pool, kind in (("unlucky", NO_CAPACITY), ("quota", NO_VCPUS)):
        group = school.group(pool)["AutoScalingGroupName"]
        knock(school, "boot-seconds", {"group": group, "seconds": RETRY_SECONDS})
        knock(school, "launch-failures", {"group": group, "kind": kind})
    starts_at = (datetime.now(UTC) + timedelta(seconds=15)).isoformat(timespec="seconds")
    signal = {"region": "us-west-2", "pods": 3}
    school.put(
        signal | {"reference": "unlucky", "pool": "unlucky", "starts_at": starts_at},
        signal | {"reference": "quota", "pool": "quota"},
        *(signal | {"reference": pool, "pool": pool} for pool in SPOT_POOLS),
    )
    (waiting,) = school.students("unlucky", 1)
    yield watch
    school.cluster.delete(f"{PODS}/{waiting}")
    cancelled = [{"region": "us-west-2", "reference": name} for name in ("unlucky", "quota", *SPOT_POOLS)]
    school.put(*cancelled, detail_type="Demand Cancelled")


def knock(school: Deployed, wish: str, body: dict[str, Any]) -> None:
    answer = urllib3.request("POST", f"{school.cloud.fleet_endpoint}/_localcloud/fleet/{wish}", json=body, timeout=10)
    assert answer.status == 200, answer.data


@contextmanager
def environment(school: Deployed, function: str, **changed: str) -> Iterator[None]:
    """The function with other variables for a while."""
    client = aws_client(school.cloud, "lambda")
    before = client.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
    client.update_function_configuration(FunctionName=function, Environment={"Variables": before | changed})
    try:
        yield
    finally:
        client.update_function_configuration(FunctionName=function, Environment={"Variables": before})


def test_launches_that_fail_are_seen_by_pool_and_reason(school: Deployed, watch: Watch) -> None:
    watch.await_breach("launch-failures", pool="unlucky", reason="insufficient-capacity")


def test_a_quota_that_is_reached_is_seen(school: Deployed, watch: Watch) -> None:
    watch.await_breach("quota-reached", pool="quota")


@pytest.mark.parametrize("pool", ["unlucky", "quota"])
def test_pods_short_of_capacity_are_seen(school: Deployed, watch: Watch, pool: str) -> None:
    watch.await_breach("pods-short", pool=pool)


def test_a_class_that_begins_without_its_nodes_is_seen(school: Deployed, watch: Watch) -> None:
    watch.await_breach("reservation-late", pool="unlucky")
    assert not watch.breaching("reservation-late", pool="fragile")


def test_a_tick_that_does_not_run_is_seen_by_what_is_missing(school: Deployed, watch: Watch) -> None:
    """Every minute with a tick is well; one without has no data, which the alarm takes for trouble."""
    alarm = watch.alarm("tick-stopped")
    assert (alarm["TreatMissingData"], alarm["ComparisonOperator"]) == ("breaching", "LessThanThreshold")
    points = await_value("a tick", lambda: watch.points("tick-stopped"), bool, timeout_seconds=100)
    assert all(point.value >= alarm["Threshold"] for point in points)
    schedules = aws_client(school.cloud, "scheduler")
    schedule = schedules.get_schedule(Name="firstbell-hub-tick")
    kept = {name: schedule[name] for name in ("Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")}
    schedules.update_schedule(**kept, State="DISABLED")
    try:
        stopped = datetime.now(UTC)
        time.sleep((minute_after(stopped) + timedelta(minutes=1) - stopped).total_seconds())
        assert not [point for point in watch.points("tick-stopped") if point.at >= minute_after(stopped)]
    finally:
        schedules.update_schedule(**kept, State="ENABLED")


def minute_after(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0) + timedelta(minutes=1)


def test_errors_of_the_ledger_and_of_functions_are_seen_and_the_lost_signal_too(school: Deployed, watch: Watch) -> None:
    with environment(school, "firstbell-hub-prescale", FIRSTBELL_LEDGER="no-such-table"):
        school.put({"region": "us-west-2", "pods": 1, "reference": "lost", "pool": "notebook-1"})
        watch.await_breach("ledger-errors")
        watch.await_breach("prescale-errors")
        watch.await_breach("signals-lost")


def test_a_function_that_is_throttled_is_seen(school: Deployed, watch: Watch) -> None:
    lambdas = aws_client(school.cloud, "lambda")
    lambdas.put_function_concurrency(FunctionName="firstbell-hub-prescale", ReservedConcurrentExecutions=0)
    try:
        school.put({"region": "us-west-2", "pods": 1, "reference": "throttled", "pool": "notebook-1"})
        watch.await_breach("prescale-throttled", timeout_seconds=30)
    finally:
        lambdas.delete_function_concurrency(FunctionName="firstbell-hub-prescale")


def test_notices_that_nobody_reads_are_seen_and_so_is_one_that_nobody_understands(
    school: Deployed, watch: Watch
) -> None:
    lambdas, sqs = aws_client(school.cloud, "lambda"), aws_client(school.cloud, "sqs")
    (mapping,) = lambdas.list_event_source_mappings(FunctionName="firstbell-hub-interruption")["EventSourceMappings"]
    lambdas.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    try:
        url = sqs.get_queue_url(QueueName="firstbell-hub-interruption")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody="not a notice")
        watch.await_breach("interruption-waiting", timeout_seconds=180)
    finally:
        lambdas.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)
    watch.await_breach("interruptions-lost")


def test_a_refusal_of_the_cluster_is_seen_and_so_is_headroom_that_is_not(school: Deployed, watch: Watch) -> None:
    school.cluster.delete(f"{ROLES}/clusterrolebindings/firstbell-tick")
    try:
        watch.await_breach("access-denied")
        watch.await_breach("cluster-unseen", pool="unlucky")
    finally:
        apply_manifest(school.cloud, ROOT / "infra" / "rbac.yaml")


def test_a_cordon_that_fails_a_pod_that_is_forced_and_a_drain_that_is_late_are_seen(
    school: Deployed, watch: Watch
) -> None:
    """Two Spot nodes go, each with a student whose budget allows nothing; one pool forces, the other leaves."""
    nodes = [node_with_a_guarded_student(school, pool) for pool in SPOT_POOLS]
    role = school.cluster.get(f"{ROLES}/clusterroles/firstbell-interruption")
    without = [rule | {"verbs": [v for v in rule["verbs"] if v != "patch"] or ["get"]} for rule in role["rules"]]
    school.cluster.merge(f"{ROLES}/clusterroles/firstbell-interruption", {"rules": without})
    try:
        for node in nodes:
            warn(school, node)
        watch.await_breach("cordon-failures", pool="fragile")
    finally:
        apply_manifest(school.cloud, ROOT / "infra" / "rbac.yaml")
    watch.await_breach("pods-forced", pool="fragile", timeout_seconds=180)
    watch.await_breach("drain-late", pool="patient", timeout_seconds=60)
    assert not watch.breaching("pods-forced", pool="patient")


def node_with_a_guarded_student(school: Deployed, pool: str) -> Document:
    school.await_outcome("Capacity Ready", reference=pool)
    (name,) = school.students(pool, 1, pool)
    await_value(f"the student of {pool} works", lambda: school.pod(name)["status"]["phase"], lambda p: p == "Running")
    school.cluster.merge(f"{PODS}/{name}", {"metadata": {"labels": {"app": name}}})
    budget = {"metadata": {"name": name}, "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": name}}}}
    school.cluster.create(f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets", budget)
    return school.cluster.get(f"/api/v1/nodes/{school.pod(name)['spec']['nodeName']}")


def warn(school: Deployed, node: Document) -> None:
    """A Spot warning; the instance itself stays, so that what is seen is the drain's doing."""
    notice = {
        "id": str(uuid.uuid4()),
        "source": "aws.ec2",
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "detail": {"instance-id": node["spec"]["providerID"].rpartition("/")[2], "instance-action": "terminate"},
    }
    said = urllib3.request("POST", f"{school.cloud.aws_endpoint}/_localcloud/aws-events", json=notice, timeout=10)
    assert said.status == 200, said.data


def test_a_student_who_waits_for_more_than_three_minutes_is_seen(school: Deployed, watch: Watch) -> None:
    watch.await_breach("pods-pending", pool="unlucky", timeout_seconds=240)


def test_all_that_students_feel_is_under_one_alarm(school: Deployed, watch: Watch) -> None:
    (composite,) = watch.cloudwatch.describe_alarms(
        AlarmNames=["firstbell-hub-students-affected"], AlarmTypes=["CompositeAlarm"]
    )["CompositeAlarms"]
    for name in ("pods-short", "reservation-late", "pods-pending", "drain-late", "pods-forced"):
        assert watch.alarm(name)["AlarmArn"] in composite["AlarmRule"]
