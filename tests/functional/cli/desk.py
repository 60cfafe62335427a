"""An operator's desk at the school in memory: the command line, with the school's fakes behind it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner, Result

from cli.__main__ import app
from cli.connection import Connection
from cli.sender import Caller, Sender
from firstbell.cluster.client import ApiServer
from tests.fakes.school import TEACHER, School

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cli.options import Target

SOURCE = TEACHER[1]
ARN = "arn:aws:iam::111122223333:user/operator"
WRITES = {
    "put", "ledger.store", "ledger.lease", "ledger.finish", "ledger.abandon", "set_desired", "update_min_size",
    "terminate_with_decrement", "detach", "set_protection", "complete_lifecycle_action", "heartbeat", "annotate_node",
    "cordon", "uncordon", "taint_out_of_service", "evict", "delete_pod", "publish", "deregister",
}  # fmt: skip
"""Every call of the fakes that changes something."""


class FakeSender(Sender):
    """Delivers at once what is put, unless the bus is `deaf`."""

    def __init__(self, school: School) -> None:
        self.school = school
        self.account = TEACHER[0]
        self.deaf = False

    def caller(self) -> Caller:
        return Caller(self.account, ARN)

    def put(self, source: str, detail_type: str, detail: Mapping[str, Any]) -> str:
        with self.school.faults.around([], "put", source, detail_type, dict(detail)):
            event = self.school.event(dict(detail), detail_type=detail_type, source=source, account=self.account)
            if not self.deaf:
                self.school.deliver(event)
            return str(event["id"])


class FakeApi(ApiServer):
    """Answers SubjectAccessReviews: everything is allowed but what is `denied`."""

    def __init__(self) -> None:
        self.denied: set[tuple[str, str]] = set()
        """(verb, resource)."""
        self.asked: list[Mapping[str, Any]] = []

    def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        spec = options["body"]["spec"]
        self.asked.append(spec)
        attributes = spec["resourceAttributes"]
        return {"status": {"allowed": (attributes["verb"], attributes["resource"]) not in self.denied}}


@dataclass
class Desk:
    school: School = field(default_factory=School)
    meanwhile: Callable[[], None] = lambda: None
    """What happens while a command waits."""

    def __post_init__(self) -> None:
        self.sender = FakeSender(self.school)
        self.api = FakeApi()
        self.targets: list[Target] = []

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, arguments, obj=self._connect)

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        ran = self.run(*arguments, "--json")
        assert ran.exit_code == code, (ran.exit_code, ran.output, ran.exception)
        document: dict[str, Any] = json.loads(ran.stdout)
        return document

    def calls(self) -> set[str]:
        return {call.name for call in self.school.faults.calls}

    def _connect(self, target: Target) -> Connection:
        self.targets.append(target)
        school = self.school
        return Connection(
            settings=school.settings,
            ledger=school.ledger,
            autoscaling=school.autoscaling,
            instance_types=school.instance_types,
            group_name=lambda pool: str(pool.group),
            cluster=lambda: school.cluster,
            api=lambda: self.api,
            sender=self.sender,
            clock=school.clock,
            sleep=self._sleep,
        )

    def _sleep(self, seconds: float) -> None:
        self.school.now += seconds
        self.meanwhile()
