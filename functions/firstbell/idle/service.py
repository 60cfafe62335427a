"""Every five minutes: pools that are quiet lose their idle nodes, pools that are up get back what they had."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from firstbell.errors import AccessDenied, ConfigurationError, NotFound
from firstbell.idle.calendar import Hours, hours_at, local_clock
from firstbell.idle.examine import examine
from firstbell.idle.needs import soon_needed
from firstbell.idle.survey import Survey, read_survey
from firstbell.idle.verdicts import Finding
from firstbell.idle.visit import Occasion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from firstbell.capacity.groups import Group
    from firstbell.capacity.idle_memory import IdleMemory
    from firstbell.capacity.pools import Pool
    from firstbell.cloud.ledger import LedgerView
    from firstbell.idle.visit import Visitor

FRESH_SECONDS = 20.0
"""A survey older than this is read anew for the next pool."""
UP = Hours(quiet=False, rule="otherwise")


@dataclass(slots=True)
class Idler:
    visitor: Visitor
    group_name: Callable[[Pool], str]
    bring_to_size: Callable[[Pool], None]
    """For demand that was left to us while we held a pool's lease."""
    _survey: Survey | None = field(default=None, init=False)

    def evaluate(self) -> None:
        """One run. A pool that fails does not keep the others from theirs; the first error is raised last."""
        view = self.visitor.ledger.read()
        errors: list[Exception] = []
        if not view.paused:
            groups = self._groups(view)
            for pool in self.visitor.settings.pools:
                try:
                    self._evaluate(pool, groups, view)
                except Exception as error:
                    self.visitor.telemetry.log.exception("idle nodes could not be looked at", pool=pool.name)
                    errors.append(error)
        self.visitor.telemetry.emit("IdleRuns")
        if errors:
            raise errors[0]

    def _evaluate(self, pool: Pool, groups: Mapping[str, Group], view: LedgerView) -> None:
        memory, group = view.state(pool.name).idle, groups.get(pool.name)
        if group is None or (pool.idle is None and not memory.owes):
            return
        now = self.visitor.clock()
        hours = hours_at(pool.idle, now) if pool.idle else UP
        if not (group.members or _unfinished(memory, hours)):
            return
        zone = ZoneInfo(pool.idle.timezone if pool.idle else "UTC")
        survey = self._read()
        occasion = Occasion(
            pool=pool,
            hours=hours,
            day=local_clock(zone, now).date().isoformat(),
            survey=survey,
            whole_cluster_goes=hours.quiet and self._whole_cluster_goes(survey, groups, view, now),
        )
        if self.visitor.visit(occasion, group.name):
            self.bring_to_size(pool)

    def _groups(self, view: LedgerView) -> dict[str, Group]:
        """Pool -> its group, for pools that can be quiet or have something to get back."""
        names: dict[str, str] = {}
        for pool in self.visitor.settings.pools:
            if pool.idle is not None or view.state(pool.name).idle.owes:
                try:
                    names[pool.name] = self.group_name(pool)
                except NotFound as error:
                    self.visitor.telemetry.log.warning("pool has no group", pool=pool.name, error=str(error))
        found = self.visitor.autoscaling.describe(list(names.values())) if names else {}
        return {pool: found[name] for pool, name in names.items() if name in found}

    def _read(self) -> Survey:
        now = self.visitor.clock()
        if self._survey is None or now - self._survey.read_at > FRESH_SECONDS:
            try:
                self._survey = read_survey(self.visitor.connect(), self.visitor.settings, now)
            except AccessDenied:
                self.visitor.telemetry.emit("ClusterAccessDenied")
                raise
        return self._survey

    def _whole_cluster_goes(self, survey: Survey, groups: Mapping[str, Group], view: LedgerView, now: float) -> bool:
        """Whether each node of the cluster could go if its system pods did, and nobody asks for any."""
        going: set[str] = set()
        for pool in self.visitor.settings.pools:
            group = groups.get(pool.name)
            if soon_needed(pool, view.reservations, view.pools, now):
                return False
            if group is None or pool.mode == "observe" or not _is_quiet(pool, now):
                continue
            if survey.sight(pool, group, self.visitor.settings, now).pending:
                return False
            around = survey.around(pool, self.visitor.settings, now, whole_cluster_goes=True)
            verdicts = examine(survey.candidates(group), around)
            going |= {v.node_name for v in verdicts if v.finding in (Finding.IDLE, Finding.LEAVING)}
        return {node.name for node in survey.nodes} <= going


def _is_quiet(pool: Pool, now: float) -> bool:
    try:
        return pool.idle is not None and hours_at(pool.idle, now).quiet
    except ConfigurationError:
        return False  # said where this pool's own turn comes


def _unfinished(memory: IdleMemory, hours: Hours) -> bool:
    """Whether a pool without members still has something to count, to say or to get back."""
    if hours.quiet:
        return bool(memory.away) or (bool(memory.removed) and not memory.zero_said)
    return memory.owes or bool(memory.quiet_since)
