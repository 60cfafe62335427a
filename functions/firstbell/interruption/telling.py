"""What became of a batch's drains, said on our bus."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firstbell.cloud.bus import OutcomeEvent
from firstbell.errors import RetryLater
from firstbell.interruption.finish import announcement, conclusion
from firstbell.interruption.plan import Ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from firstbell.cloud.bus import Bus
    from firstbell.interruption.working import Pass
    from firstbell.outcomes import Outcome
    from firstbell.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Teller:
    bus: Bus
    cluster_name: str
    telemetry: Telemetry

    def say(self, passes: Sequence[Pass], now: float) -> None:
        """Node Draining once a drain, and how it ended; in one call for the batch."""
        outcomes: list[Outcome] = []
        for one in passes:
            before = len(outcomes)
            if one.error is None and one.node is not None and not one.drain.announced:
                outcomes.append(announcement(one, one.node.name, self.cluster_name, now))
                one.drain = replace(one.drain, announced=True)
            if one.error is None and one.ending is not None and (end := conclusion(one, self.cluster_name, now)):
                outcomes.append(end)
                one.drain = replace(one.drain, concluded=True)
                _measure_end(one, now)
            one.said = len(outcomes) > before
        try:
            self.bus.publish([OutcomeEvent(outcome.DETAIL_TYPE, outcome.as_detail()) for outcome in outcomes])
        except RetryLater as error:
            self._unsaid(passes, error)
        else:
            self.telemetry.log_outcomes(outcomes)

    def _unsaid(self, passes: Iterable[Pass], error: RetryLater) -> None:
        """A silent bus holds up no drain: what was begun is said in the next pass, what ended is
        ended again."""
        self.telemetry.log.warning("outcomes could not be published", error=str(error))
        for one in passes:
            if one.said and one.ending is not None:
                one.error = error
            elif one.said:
                one.drain = replace(one.drain, announced=False)


def _measure_end(one: Pass, now: float) -> None:
    pool = one.pool.name
    one.count("DrainSeconds", now - one.drain.noticed_at, pool=pool)
    one.count("DrainSecondsLeft", one.drain.deadline - now, pool=pool)
    if one.drain.forced:
        one.count("PodsForced", len(one.drain.forced), pool=pool)
    if left := sum(step.remains for step in one.steps):
        one.count("PodsLeft", left, pool=pool)
    if one.ending is Ending.DEADLINE:
        one.count("DrainsLate", pool=pool)
