"""Drains while the API server fails, tokens expire, and the function is killed before and after every kind of call."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from tests.e2e.audit import our_cordons, our_deletions, our_evictions, removed_at
from tests.e2e.cluster_api import Document, await_value
from tests.e2e.deployed import Deployed
from tests.e2e.gate import Answered, Call, Fate, Gate, Killed, Silent
from tests.e2e.workers import FUNCTION, SPOT_SECONDS, Worker, Workers, uids

pytestmark = pytest.mark.long

PODS = 3
WAVE_DRAINS = 6
WAVES = 4
KILLING_SECONDS = 40.0
"""Of each wave: what is killed later may not have the time to be done again before its deadline."""
SECONDS_BETWEEN_KILLS = 4.0
DECISIVE = frozenset(
    {
        "dynamodb:PutItem",
        "sqs:SendMessageBatch",
        "query:CompleteLifecycleAction",
        "PATCH /api/v1/nodes/*",
        "POST /api/v1/namespaces/hub/pods/*/eviction",
    }
)
"""Kinds of calls that change what others see."""


@dataclass
class Scene:
    name: str
    worker: Worker
    pods: list[Document]
    hooked: bool = False
    noticed_at: float = 0.0


@pytest.fixture
def workers(school: Deployed) -> Workers:
    return Workers(school)


@pytest.fixture
def gate(school: Deployed) -> Iterator[Gate]:
    with Gate(school.cloud, FUNCTION) as gate:
        yield gate


def scenes(workers: Workers, *names: str) -> list[Scene]:
    """A node with pods for each name, and one spare node that takes them all."""
    *taken, spare = workers.take(len(names) + 1)
    for name, worker in zip(names, taken, strict=True):
        workers.reserve(name, worker)
        workers.start(name, PODS)
    made = [Scene(name, worker, workers.await_running(name, PODS)) for name, worker in zip(names, taken, strict=True)]
    for name in names:
        workers.reserve(name, spare)
    return made


def check(workers: Workers, scene: Scene) -> None:
    """The end of a drain: pods gone in time, each asked away once, their successors running, one cordon, one answer."""
    log = workers.cloud.audit_log
    workers.school.await_outcome("Node Drained", instance_id=scene.worker.instance_id, timeout_seconds=150)
    removals = [removed_at(log, uid) for uid in uids(scene.pods)]
    assert all(at is not None and at < scene.noticed_at + SPOT_SECONDS for at in removals)
    touched = [w for w in (*our_evictions(log), *our_deletions(log)) if w.name.startswith(scene.name) and w.code < 300]
    assert {write.uid for write in touched} == uids(scene.pods)
    assert len(our_cordons(log, scene.worker.node)) == 1
    assert len(workers.completions(scene.worker)) == int(scene.hooked)
    successors = workers.await_running(scene.name, PODS)
    assert scene.worker.node not in {pod["spec"]["nodeName"] for pod in successors}


def refused(code: int, message: str, headers: Mapping[str, str] | None = None) -> Answered:
    return Answered(code, {"kind": "Status", "status": "Failure", "code": code, "message": message}, headers or {})


def is_kubernetes(call: Call) -> bool:
    return "/api/" in call.operation or "/apis/" in call.operation


def test_an_api_server_that_fails_for_a_while_delays_a_drain_and_no_more(workers: Workers, gate: Gate) -> None:
    """Cases 14 and 62: it answers 500, then 429, then nothing, and then as ever."""
    [scene] = scenes(workers, "weather")
    begun = time.monotonic()

    def decide(call: Call) -> Fate | None:
        age = time.monotonic() - begun
        if not is_kubernetes(call) or age > 24:
            return None
        if age < 8:
            return Answered(
                500, {"kind": "Status", "status": "Failure", "code": 500, "message": "etcdserver: no leader"}
            )
        if age < 16:
            status = {"kind": "Status", "status": "Failure", "code": 429, "message": "too many requests"}
            return Answered(429, status, {"Retry-After": "1"})
        return Silent()

    gate.decide = decide
    scene.noticed_at = time.time()
    workers.warn(scene.worker.instance_id)
    check(workers, scene)
    workers.await_empty_queue()


def test_tokens_that_expire_during_a_drain_are_renewed(workers: Workers, gate: Gate) -> None:
    """Case 61."""
    [scene] = scenes(workers, "expiry")
    expired: set[str] = set()

    def decide(call: Call) -> Fate | None:
        if not is_kubernetes(call):
            return None
        if call.token in expired:
            return refused(401, "Unauthorized")
        if call.operation.endswith("/eviction") and not expired:
            expired.update(seen.token for seen in gate.calls)
            return refused(401, "Unauthorized")
        return None

    gate.decide = decide
    scene.noticed_at = time.time()
    workers.warn(scene.worker.instance_id)
    check(workers, scene)
    assert len({call.token for call in gate.calls if is_kubernetes(call)} - expired) >= 1
    workers.await_empty_queue()


@dataclass
class Killer:
    """Kills before and after each kind of call once, over all waves; a few seconds apart, but for the decisive ones."""

    done: set[tuple[str, bool]] = field(default_factory=set)
    begun: float = 0.0
    last: float = 0.0

    def decide(self, call: Call) -> Fate | None:
        now = time.monotonic()
        soon = now < self.last + SECONDS_BETWEEN_KILLS and kind_of(call) not in DECISIVE
        if soon or now > self.begun + KILLING_SECONDS:
            return None
        for after in (False, True):
            if (kind_of(call), after) not in self.done:
                self.done.add((kind_of(call), after))
                self.last = now
                return Killed(after=after)
        return None


@pytest.fixture(scope="module")
def killer() -> Killer:
    return Killer()


@pytest.mark.disruptive
@pytest.mark.parametrize("wave", range(WAVES))
def test_a_drain_survives_a_kill_before_and_after_any_call(
    workers: Workers, gate: Gate, killer: Killer, wave: int
) -> None:
    """Half of the nodes are noticed by Spot, half by their terminate hook."""
    made = scenes(workers, *(f"wave{wave}-{number}" for number in range(WAVE_DRAINS)))
    killer.begun = time.monotonic()
    gate.decide = killer.decide
    for number, scene in enumerate(made):
        scene.noticed_at = time.time()
        scene.hooked = number % 2 == 1
        if scene.hooked:
            workers.terminate(scene.worker)
        else:
            workers.warn(scene.worker.instance_id)
    for scene in made:
        check(workers, scene)
    assert gate.kills > 0
    await_value("each hook was answered", lambda: [workers.life(s.worker) for s in made if s.hooked], _all_terminated)
    workers.await_empty_queue(timeout_seconds=150)


@pytest.mark.disruptive
def test_every_decisive_call_was_somebodys_last(killer: Killer) -> None:
    assert killer.done >= {(kind, after) for kind in DECISIVE for after in (False, True)}


def kind_of(call: Call) -> str:
    """The operation without the names in it."""
    return re.sub(r"(/nodes|/pods)/[^/]+", r"\1/*", call.operation)


def _all_terminated(lives: list[list[str]]) -> bool:
    return all("terminated" in life for life in lives)
