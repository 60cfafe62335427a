"""Findings: what is wrong, how bad it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from firstbell.cloud.refusals import Refused
from firstbell.errors import FirstbellError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

Severity = Literal["error", "warning", "unchecked"]

REDEPLOY = "`make deploy` makes what the stack lacks."
ASK_OTHERWISE = "Ask with credentials, and from a place, that may read it."
GONE = ("NotFound", "NotExist", "NonExistent", "ResourceNotFoundException")
"""Endings of the codes by which AWS's services say that something does not exist."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    """error: something does not work. warning: something fights us. unchecked: nobody could look."""
    check: str
    subject: str
    problem: str
    remedy: str

    @property
    def wrong(self) -> bool:
        return self.severity != "unchecked"


@dataclass(slots=True)
class Examination:
    """Collects findings. What cannot be read is a finding too, so that silence means health."""

    findings: list[Finding] = field(default_factory=list)
    examined: int = 0

    def add(self, found: list[Finding]) -> None:
        self.examined += 1
        self.findings += found

    def gathered(self) -> list[Finding]:
        """The findings, with what nobody could look at for one reason as one."""
        subjects: dict[tuple[str, str], list[str]] = {}
        for finding in self.findings:
            if not finding.wrong:
                subjects.setdefault((finding.check, finding.problem), []).append(finding.subject)
        wrong = [finding for finding in self.findings if finding.wrong]
        unchecked = [
            Finding("unchecked", check, ", ".join(names), problem, ASK_OTHERWISE)
            for (check, problem), names in subjects.items()
        ]
        return wrong + unchecked

    def read(self, check: str, subject: str, read: Callable[[], T], *, remedy: str = REDEPLOY) -> T | None:
        """What `read` answers; None, with a finding, where there is nothing or nobody may look."""
        try:
            return read()
        except FirstbellError as error:
            gone = isinstance(error, NotFound) or (isinstance(error, Refused) and error.code.endswith(GONE))
            if gone:
                self.add([Finding("error", check, subject, "does not exist", remedy)])
            else:
                self.add([Finding("unchecked", check, subject, str(error), ASK_OTHERWISE)])
            return None
