"""What interruptions leave to the clock: changes whose time has come, nodes to give back, instances to end.

Each is done first and noted in the ledger after, so that a run which is killed in between does it again, harmlessly.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.capacity.changes import due, enqueued
from firstbell.capacity.drains import GIVEN_BACK, Phase
from firstbell.cloud.interruption_queue import Delayed
from firstbell.cluster.cordons import mark_of
from firstbell.errors import Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from firstbell.capacity.changes import Change, DueChange
    from firstbell.capacity.drains import Drain
    from firstbell.capacity.groups import Group
    from firstbell.cloud.autoscaling import AutoScaling
    from firstbell.cloud.drain_ledger import Detached, DrainLedger, Held
    from firstbell.cloud.instances import Instances
    from firstbell.cloud.interruption_queue import InterruptionQueue
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.settings import Cluster
    from firstbell.telemetry import Telemetry

SPOT_NOTICE_SECONDS = 120.0
"""https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html"""
DETACHING_SECONDS = 60.0
"""An instance is remembered before it is detached; whoever was at it has been ended by Lambda long before this."""


@dataclass(frozen=True, slots=True)
class Aftermath:
    settings: Cluster
    ledger: DrainLedger
    queue: InterruptionQueue
    autoscaling: AutoScaling
    instances: Instances
    connect: Callable[[], KubernetesCluster]
    telemetry: Telemetry
    clock: Callable[[], float]

    def look_after(self) -> list[Exception]:
        """Does what is due; not to be called during a pause. Returns what failed: it is due again next minute."""
        now = self.clock()
        errors: list[Exception] = []
        with _kept(self.telemetry, errors, "what drains left could not be read"):
            remembered = self.ledger.remembered()
            self._enqueue(due(remembered.changes, self.settings.pools, now), errors)
            held = [one for one in remembered.held if now >= one.until and self._acts(one.pool)]
            detached = [one for one in remembered.detached if self._acts(one.pool)]
            if held or detached:
                drains = self.ledger.read(
                    [*(one.instance_id for one in held), *(one.instance_id for one in detached)]
                ).drains
                self._give_back([one for one in held if not _under_way(drains.get(one.instance_id), now)], errors)
                self._end([one for one in detached if _over(one, drains.get(one.instance_id), now)], now, errors)
        return errors

    def _acts(self, pool_name: str) -> bool:
        """What we did to a pool that is no longer listed is still ours to undo."""
        return all(pool.mode == "act" for pool in self.settings.pools if pool.name == pool_name)

    def _enqueue(self, changes: Iterable[DueChange], errors: list[Exception]) -> None:
        """Also for pools that only observe: the drainer says what it would do."""
        of_event: dict[str, list[DueChange]] = {}
        for one in changes:
            of_event.setdefault(one.change.event_arn, []).append(one)
        for event_arn, parts in of_event.items():
            with _kept(self.telemetry, errors, "scheduled change could not be enqueued", event_arn):
                self.queue.send([Delayed(part.body) for part in parts])
                self._note_enqueued(parts[0].change, [part.pool for part in parts])

    def _note_enqueued(self, change: Change, pools: Iterable[str]) -> None:
        for pool in pools:
            change = enqueued(change, pool)
        try:
            self.ledger.write_change(change)
        except Conflict:  # announced anew meanwhile: what is due then is seen next minute
            self.telemetry.log.info("scheduled change was announced anew", event_arn=change.event_arn)

    def _give_back(self, held: Iterable[Held], errors: list[Exception]) -> None:
        for one in held:
            with _kept(self.telemetry, errors, "node could not be given back", one.node):
                try:
                    self._uncordon(one)
                except NotFound:
                    self.telemetry.log.info("held node is gone", node=one.node)
                except Conflict:  # read again next minute
                    continue
                self.ledger.forget_held(one)

    def _uncordon(self, one: Held) -> None:
        """Unless something followed that takes the node away: then its mark is of another kind."""
        cluster = self.connect()
        node = cluster.node(one.node)
        mark = mark_of(node, "interruption")
        if node.instance_id == one.instance_id and mark is not None and mark.kind in GIVEN_BACK:
            cluster.uncordon(node, "interruption")
            self.telemetry.log.info("node given back: nothing followed", node=one.node, kind=mark.kind, pool=one.pool)

    def _end(self, detached: Sequence[Detached], now: float, errors: list[Exception]) -> None:
        groups = self.autoscaling.describe({one.group for one in detached}) if detached else {}
        for one in detached:
            with _kept(self.telemetry, errors, "survivor could not be ended", one.instance_id):
                lifecycle = _lifecycle(groups.get(one.group), one.instance_id)
                if lifecycle == "Detaching" or (lifecycle and now < one.since + DETACHING_SECONDS):
                    continue
                if not lifecycle:
                    self._terminate(one)
                self.ledger.forget_detached(one.instance_id)

    def _terminate(self, one: Detached) -> None:
        try:
            self.instances.terminate(one.instance_id)
        except NotFound:
            return
        self.telemetry.log.info("detached instance ended", instance_id=one.instance_id, pool=one.pool)


@contextmanager
def _kept(telemetry: Telemetry, errors: list[Exception], words: str, what: str = "") -> Iterator[None]:
    """Around one thing to do: its error is logged and kept, and does not keep the others from theirs."""
    try:
        yield
    except Exception as error:
        telemetry.log.exception(words, what=what)
        errors.append(error)


def _under_way(drain: Drain | None, now: float) -> bool:
    return drain is not None and drain.under_way(now)


def _over(one: Detached, drain: Drain | None, now: float) -> bool:
    """Whether its drain is done, or has no time left; one that the ledger lost had a Spot notice's."""
    if drain is None:
        return now > one.since + SPOT_NOTICE_SECONDS
    return drain.phase is Phase.DONE or now > drain.deadline


def _lifecycle(group: Group | None, instance_id: str) -> str:
    """Empty where the instance is no member, or there is no such group."""
    members = group.members if group else ()
    return next((member.lifecycle for member in members if member.instance_id == instance_id), "")
