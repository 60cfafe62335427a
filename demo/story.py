"""The morning as it happens: the platform and Firstbell on it, 07:55, and 08:00. Labels; the clock is real."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kubernetes import client

from demo import measures, portal, school
from demo.board import Board
from demo.classroom import Classroom, let_in
from demo.observer import Observer
from demo.reactive import ReactiveScaler
from demo.summary import Evidence
from demo.tap import Heard, Tap
from localcloud.clients import aws_client, kubernetes_client
from localcloud.cloud import REGION, LocalCloud
from localcloud.deploy import apply_manifest, deploy

ROOT = Path(__file__).resolve().parent.parent
BUS = f"firstbell-{school.CLUSTER}"
POOL = "notebook-m5-2xlarge"
TWIN = "notebook-m5-2xlarge-twin"
CLASSES = {"bio101": 40, "physics": 120}
POD = {"cpu": "500m", "memory": "2Gi"}
ARRIVAL_SECONDS = 15.0
PATIENCE_SECONDS = 180.0
POLL_SECONDS = 0.2


class WentWrong(Exception):
    """The morning cannot go on: what was waited for did not come."""


def rooms(pool: str, *, announced: bool) -> list[Classroom]:
    return [Classroom(reference, pods, pool, **POD, announced=announced) for reference, pods in CLASSES.items()]


class Morning:
    """One morning on one running cloud, told on a board."""

    def __init__(self, cloud: LocalCloud, board: Board) -> None:
        self._cloud = cloud
        self._board = board
        self._kubernetes = kubernetes_client(cloud)
        self._heard: list[Heard] = []

    def prepare(self) -> None:
        """Build the school's platform and deploy Firstbell onto it."""
        self._board.say("morning", f"the school's platform: {POOL}, its twin {TWIN}, and EKS's DaemonSets")
        school.build_cluster(self._kubernetes)
        for pool in (POOL, TWIN):
            school.build_group(self._aws("ec2"), self._aws("autoscaling"), pool)
        self._board.say("morning", "deploys Firstbell with the CDK")
        context = {"file": "demo/firstbell.yaml", "target": "host"}
        deploy(self._cloud, ROOT, context, lambda line: self._board.say("cloud", line))
        apply_manifest(self._cloud, ROOT / "infra" / "rbac.yaml")

    def live(self) -> Evidence:
        """From the portal's signals to the last running pod. Raises WentWrong."""
        autoscaling = self._aws("autoscaling")
        tap = Tap(self._aws("events"), self._aws("sqs"), BUS, self._hear)
        observer = Observer(self._kubernetes, autoscaling, self._board)
        reactive = ReactiveScaler(
            self._kubernetes,
            autoscaling,
            self._aws("ec2"),
            group=TWIN,
            say=lambda text: self._board.say("reactive", text),
        )
        with ExitStack() as stack:
            for part in (tap, observer, reactive):
                part.start()
                stack.callback(part.stop)
            signalled = self._announce()
            ready_before_class = self._await_ready()
            self._teach()
        return Evidence(
            signalled=signalled,
            heard=self._heard,
            ready_before_class=ready_before_class,
            announced=self._board.pools[POOL],
            twin=self._board.pools[TWIN],
            pod_times=measures.pod_times(self._lines(self._cloud.audit_log)),
            raises={pool: measures.raises(self._calls(), pool) for pool in (POOL, TWIN)},
            disturbed=measures.first_deletion(self._lines(self._cloud.audit_log), self._board.pools[POOL].pods),
        )

    def _announce(self) -> float:
        self._board.clock = "07:55, the portal signals its classes"
        signalled = portal.put(self._aws("events"), BUS, portal.signals(rooms(POOL, announced=True), REGION))
        self._board.reach("signal", signalled)
        classes = ", ".join(f"{pods} in {reference}" for reference, pods in CLASSES.items())
        self._board.say("portal", f"07:55  {classes}; and one malformed signal")
        return signalled

    def _await_ready(self) -> bool:
        """Wait for the outcomes of all three signals. False when fewer nodes were Ready than were asked for."""
        pool = self._board.pools[POOL]
        self._until("nodes to be asked for", lambda: pool.desired > 0)
        self._board.reach("nodes asked for")
        self._until("a Ready node", lambda: bool(pool.ready_at))
        self._board.reach("first node Ready")
        self._until("Capacity Ready for every class", lambda: set(CLASSES) <= set(self._references("Capacity Ready")))
        self._board.reach("Capacity Ready")
        return 0 < pool.desired <= len(pool.ready_at)

    def _teach(self) -> None:
        pool, twin = self._board.pools[POOL], self._board.pools[TWIN]
        everybody = sum(CLASSES.values())
        self._board.clock = "08:00, the students come"
        self._board.reach("08:00")
        self._board.say("morning", f"08:00  {everybody} students come to {POOL}, and as many, unannounced, to {TWIN}")
        let_in(
            client.CoreV1Api(self._kubernetes),
            [*rooms(POOL, announced=True), *rooms(TWIN, announced=False)],
            ARRIVAL_SECONDS,
        )
        self._until("every announced student's pod to run", lambda: len(pool.running) == everybody)
        self._board.reach("all announced run")
        self._board.say("morning", f"all {everybody} announced students work")
        self._until("every unannounced student's pod to run", lambda: len(twin.running) == everybody)
        self._board.reach("all unannounced run")
        self._board.say("morning", f"all {everybody} unannounced students work")

    def _hear(self, heard: Heard) -> None:
        self._heard.append(heard)
        if heard.source == "firstbell":
            self._board.say("firstbell", spoken(heard))

    def _references(self, detail_type: str) -> list[str]:
        return [heard.detail["reference"] for heard in list(self._heard) if heard.detail_type == detail_type]

    def _until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            self._cloud.raise_if_any_ended()
            if time.monotonic() > deadline:
                raise WentWrong(f"waited {PATIENCE_SECONDS:.0f} s in vain for {what}")
            time.sleep(POLL_SECONDS)

    def _aws(self, service: str) -> Any:
        return aws_client(self._cloud, service)

    def _calls(self) -> list[str]:
        return self._lines(self._cloud.state_dir / "fleet-calls.jsonl")

    @staticmethod
    def _lines(log: Path) -> list[str]:
        return log.read_text().splitlines()


def spoken(heard: Heard) -> str:
    """An outcome event as one line."""
    detail = heard.detail
    about = detail.get("reference", detail.get("pool", ""))
    facts = {
        "Capacity Requested": "{pods} pods; nodes {desired_before} -> {desired_after}, {density} pods each",
        "Capacity Ready": "{pods} pods have their places on {nodes} nodes",
        "Capacity Short": "{pods_short} pods short: {reason}",
    }.get(heard.detail_type)
    if heard.detail_type == "Signal Rejected":
        problems = "; ".join(f"{each['field']} {each['problem']}" for each in detail["problems"])
        return f"{heard.detail_type}  {about}: {problems}"
    return f"{heard.detail_type}  {about}: {facts.format(**detail)}" if facts else f"{heard.detail_type}  {about}"
