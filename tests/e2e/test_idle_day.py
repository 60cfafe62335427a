"""A school day in time-lapse, on a cloud of its own whose only pool goes to zero: the clock is real, and the quiet
window lies a few minutes ahead of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from localcloud.cloud import LocalCloud, LocalCloudConfig
from tests.e2e.cluster_api import NODES, Document, await_value
from tests.e2e.deployed import FILE, Deployed, deploy_school
from tests.e2e.idling import Idling, touched_by_others, written_by_us

pytestmark = pytest.mark.disruptive

POOL = "notebook-1"
DENSITY = 14
"""Pods of 500m and 2 GiB on a recorded m5.2xlarge beside its DaemonSets."""
CLASS = 2 * DENSITY
UP_MINUTES, QUIET_MINUTES = 7, 8
MINIMUM, EDITED_MAXIMUM = 1, 40
COREDNS = "/apis/apps/v1/namespaces/kube-system/deployments"
BUDGETS = "/apis/policy/v1/namespaces/kube-system/poddisruptionbudgets"
SYSTEM_PODS = "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-dns"
BETWEEN_EVALUATIONS_SECONDS = 7.0


@dataclass(frozen=True)
class Day:
    school: Deployed
    quiet_from: datetime
    quiet_to: datetime

    @property
    def idling(self) -> Idling:
        return Idling(self.school, POOL)

    def evaluate_until(self, what: str, is_it: Callable[[], bool]) -> None:
        """Evaluations in quick succession, as five minutes apart on AWS."""
        deadline = time.monotonic() + 150
        while not is_it():
            assert time.monotonic() < deadline, f"{what}: {sorted(self.idling.nodes())}"
            self.idling.evaluate()
            time.sleep(BETWEEN_EVALUATIONS_SECONDS)

    def wait_until(self, moment: datetime) -> None:
        time.sleep(max(0.0, (moment - datetime.now(UTC)).total_seconds()) + 1)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    config = LocalCloudConfig(name="day", state_root=tmp_path_factory.mktemp("days"))
    with LocalCloud.start(config) as cloud:
        begins = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=UP_MINUTES)
        ends = begins + timedelta(minutes=QUIET_MINUTES)
        school = deploy_school(cloud, operators_file(begins, ends))
        yield Day(school, begins, ends)
        school.stop()


def operators_file(begins: datetime, ends: datetime) -> str:
    """The file of the other tests with its first pool alone, which is quiet between these moments."""
    file = yaml.safe_load(FILE.read_text())
    [cluster] = file["clusters"]
    pool = next(pool for pool in cluster["pools"] if pool["name"] == POOL)
    pool["create"]["min_size"] = MINIMUM
    pool["idle"] = {
        "timezone": "UTC",
        "quiet": [{"days": "Mon-Sun", "from": f"{begins:%H:%M}", "to": f"{ends:%H:%M}"}],
        "idle_minutes": 0,
        "settle_seconds": 5,
    }
    cluster["pools"] = [pool]
    return str(yaml.safe_dump(file))


def test_a_day_from_the_morning_signal_over_zero_nodes_to_the_next_morning(day: Day) -> None:
    school, idling = day.school, day.idling
    school.cluster.create(COREDNS, core_dns())
    school.cluster.create(BUDGETS, budget())

    # the morning: a signal, nodes, the class
    school.put({"region": "us-west-2", "pods": CLASS, "reference": "bio101", "hold_minutes": 4})
    school.await_outcome("Capacity Ready", reference="bio101")
    students = school.students(POOL, CLASS, "bio101")
    for student in students:
        idling.await_running(student)
    idling.evaluate()
    assert not written_by_us(school.cloud.audit_log, "firstbell:idle"), "something went by day"

    # the last lesson is over; one notebook still runs
    straggler, *others = students
    hers = idling.node_of(straggler)
    idling.leave(*others)
    day.wait_until(day.quiet_from)
    day.evaluate_until("the others go", lambda: set(idling.nodes()) == {hers})
    kept = school.await_outcome("Pool Kept", pool=POOL)
    assert [pod["pod"] for node in kept["nodes"] for pod in node["pods"]].count(f"hub/{straggler}") == 1
    assert school.pod(straggler)["status"]["phase"] == "Running"
    await_value("coredns serves her", lambda: homes(day), lambda nodes: nodes == [hers])

    # she leaves: zero nodes in the pool, zero nodes in the cluster
    idling.leave(straggler)
    day.evaluate_until("the last node goes", lambda: not school.cluster.get(NODES)["items"])
    day.evaluate_until("it is said", lambda: bool(school.outcomes("Pool Scaled To Zero")))
    zero = school.await_outcome("Pool Scaled To Zero", pool=POOL)
    assert zero["min_size"] == MINIMUM
    group = school.group(POOL)
    assert (group["MinSize"], group["DesiredCapacity"], group["Instances"]) == (0, 0, [])

    # the operator edits the group in the night; in the morning it is as the operator has it
    name = group["AutoScalingGroupName"]
    school.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MaxSize=EDITED_MAXIMUM)
    day.wait_until(day.quiet_to)
    idling.evaluate()
    group = school.group(POOL)
    assert (group["MinSize"], group["MaxSize"]) == (MINIMUM, EDITED_MAXIMUM)
    assert group["DesiredCapacity"] >= MINIMUM

    # the next class
    school.put({"region": "us-west-2", "pods": CLASS, "reference": "chem202"})
    school.await_outcome("Capacity Ready", reference="chem202")
    next_day = school.students(POOL, CLASS, "chem202")
    for student in next_day:
        idling.await_running(student)
    assert not touched_by_others(school.cloud.audit_log, {*students, *next_day})


def homes(day: Day) -> list[str]:
    return [pod["spec"].get("nodeName", "") for pod in day.school.cluster.get(SYSTEM_PODS)["items"]]


def core_dns() -> Document:
    labels = {"k8s-app": "kube-dns"}
    container = {"name": "coredns", "image": "eks/coredns", "resources": {"requests": {"cpu": "50m", "memory": "70Mi"}}}
    spec = {
        "automountServiceAccountToken": False,
        "tolerations": [{"key": "hub.jupyter.org/dedicated", "operator": "Exists"}],
        "containers": [container],
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "metadata": {"name": "coredns", "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def budget() -> Document:
    """EKS's own for coredns: one may be away."""
    return {
        "metadata": {"name": "coredns"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"k8s-app": "kube-dns"}}},
    }
