"""The Lambda handler: what it returns to SQS, and what it never starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from firstbell.errors import AccessDenied, RetryLater
from firstbell.interruption import handler as module
from firstbell.settings import load_cluster
from tests.functional.interruption.scene import Scene
from tests.unit.interruption.samples import sample

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
FILE = {
    "name": "hub",
    "region": "us-west-2",
    "default_pool": "notebook",
    "pools": [{"name": "notebook", "group": "notebook-a", "pod": {"cpu_millicores": 100}}],
}


class Context:
    function_name = "interruption"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:us-west-2:111122223333:function:interruption"
    aws_request_id = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        return 15_000


class Wired:
    """The handler's wiring over a scene's fakes."""

    def __init__(self, scene: Scene, refusal: Exception | None = None) -> None:
        self.scene, self.refusal = scene, refusal
        self.queue = scene.queue

    def drainer(self, holder: str, time_left: Callable[[], float]) -> Any:
        if self.refusal is not None:
            raise self.refusal
        assert time_left() == 15
        return self.scene.drainer()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "firstbell.json"
    path.write_text(json.dumps(FILE))
    monkeypatch.setenv("FIRSTBELL_FILE", str(path))
    load_cluster.cache_clear()


def records(scene: Scene) -> dict[str, Any]:
    return {
        "Records": [
            {
                "messageId": message.id,
                "receiptHandle": message.receipt,
                "body": message.body,
                "attributes": {"ApproximateReceiveCount": str(message.receives)},
            }
            for message in scene.queue.receive()
        ]
    }


def handle(scene: Scene, monkeypatch: pytest.MonkeyPatch, refusal: Exception | None = None) -> list[str]:
    monkeypatch.setattr(module, "_wiring", lambda: Wired(scene, refusal))
    answer = module.handler(records(scene), Context())  # type: ignore[arg-type]
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


@pytest.mark.usefixtures("file")
def test_only_the_failed_record_of_a_batch_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 65: ten records, the third fails."""
    scene = Scene(nodes=9, pods=0)
    scene.spot(*(f"i-0{n}" for n in range(1, 10)))
    scene.queue.put(sample("flat_test_notification"))
    scene.faults.fail("cordon", ZeroDivisionError("a fault of ours"), nth=3)
    assert handle(scene, monkeypatch) == ["m3"]


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize("error", [RetryLater("EKS is throttled"), AccessDenied("no access entry")])
def test_a_batch_that_cannot_be_begun_is_returned_whole(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Case 65: all fail, and the invocation does not raise. Case 62: not read as "node missing"."""
    scene = Scene(nodes=3)
    scene.spot("i-01", "i-02", "i-03")
    assert handle(scene, monkeypatch, error) == ["m1", "m2", "m3"]


@pytest.mark.usefixtures("file")
def test_what_nobody_understands_is_buried_and_acknowledged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = Scene()
    scene.queue.put("not json")
    scene.spot()
    assert handle(scene, monkeypatch) == []
    assert scene.queue.buried == ["not json"]
    assert scene.cluster.node_by_name["n1"].unschedulable
    assert "NoticesUnreadable" in capsys.readouterr().out


@pytest.mark.usefixtures("file")
def test_what_could_not_be_buried_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.queue.put("not json")
    scene.faults.fail("bury", RetryLater("sqs"))
    assert handle(scene, monkeypatch) == ["m1"]


def test_irrelevant_events_never_import_a_client(tmp_path: Path) -> None:
    """Health of another service, a launch hook, a running instance, a recommendation that is only observed."""
    path = tmp_path / "firstbell.json"
    path.write_text(json.dumps(FILE))
    names = ["health_other_service", "flat_lifecycle_launch", "state_running", "rebalance", "flat_test_notification"]
    event = {
        "Records": [{"messageId": name, "receiptHandle": "r", "body": sample(name), "attributes": {}} for name in names]
    }
    program = (
        "import json, sys\n"
        "from firstbell.interruption.handler import handler\n"
        "from tests.functional.interruption.test_handler import Context\n"
        "heavy = {'boto3', 'botocore', 'urllib3', 'kubernetes'}\n"
        "before = heavy & set(sys.modules)\n"
        f"answer = handler(json.loads({json.dumps(json.dumps(event))}), Context())\n"
        "print(json.dumps([answer, sorted(heavy & set(sys.modules) - before)]), file=sys.stderr)\n"
    )
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'functions'}", "FIRSTBELL_FILE": str(path)}
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(answer.stderr.splitlines()[-1]) == [{"batchItemFailures": []}, []]
    assert answer.stdout.count("NoticesIgnored") >= len(names)
