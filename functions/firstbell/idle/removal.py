"""The second look at one node, and its removal. Everything is read again; the node's pods last, right before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firstbell.capacity.idle_memory import LEAVING_SECONDS
from firstbell.errors import Conflict, NotFound
from firstbell.idle.examine import examine
from firstbell.idle.needs import soon_needed
from firstbell.idle.plan import decide
from firstbell.idle.survey import candidate
from firstbell.idle.verdicts import Finding, Step, Surroundings, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from firstbell.capacity.groups import Group
    from firstbell.capacity.idle_memory import IdleMemory
    from firstbell.capacity.idle_policy import IdlePolicy
    from firstbell.capacity.reservations import Reservation
    from firstbell.cloud.autoscaling import AutoScaling
    from firstbell.cloud.ledger import Ledger
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.idle.lease import HeldLease

CALL_SECONDS = 60.0
"""More than one call to AWS can last, with its retries (`firstbell.cloud.session`)."""


class DemandChanged(Exception):
    """Somebody asked for capacity, or paused us, since the nodes were judged."""


@dataclass(frozen=True, slots=True)
class Remover:
    ledger: Ledger
    autoscaling: AutoScaling
    cluster: KubernetesCluster
    policy: IdlePolicy
    clock: Callable[[], float]

    def remove(
        self,
        verdict: Verdict,
        group: Group,
        memory: IdleMemory,
        around: Surroundings,
        reservations: tuple[Reservation, ...],
        lease: HeldLease,
    ) -> Verdict:
        """The verdict of the second look; if it `goes`, the instance is on its way out.

        Raises DemandChanged, and what AWS and the API server raise: then nothing is known of the instance, and the next
        evaluation looks again.
        """
        self._check_demand(around, reservations, lease)
        again = self._look(verdict, group, replace(memory, leaving={}), around)
        if again.goes and self._in_time(verdict, memory, lease):
            try:
                self.autoscaling.terminate_with_decrement(verdict.instance_id)
            except Conflict as error:
                return _kept(verdict, Finding.MIN_SIZE, str(error))
            except NotFound:
                return _kept(verdict, Finding.LEAVING, "its instance is no member any more")
            return again
        return replace(again, step=Step.WAIT) if again.goes else again

    def _in_time(self, verdict: Verdict, memory: IdleMemory, lease: HeldLease) -> bool:
        """Whether nobody un-cordons the node until the call that ends its instance is surely over."""
        set_out_at = memory.leaving.get(verdict.instance_id, 0.0)
        return lease.lasts() and self.clock() - set_out_at < LEAVING_SECONDS - CALL_SECONDS

    def _check_demand(self, around: Surroundings, reservations: tuple[Reservation, ...], lease: HeldLease) -> None:
        if not lease.still_ours(renewed=True):
            raise DemandChanged
        view = self.ledger.read()
        now_needed = soon_needed(around.pool, view.reservations, view.pools, around.now)
        if view.paused or _asked(now_needed) != _asked(reservations):
            raise DemandChanged

    def _look(self, verdict: Verdict, group: Group, memory: IdleMemory, around: Surroundings) -> Verdict:
        refreshing = self.autoscaling.instance_refresh_running(group.name)
        now_group = self.autoscaling.describe([group.name]).get(group.name)
        member = (
            next((m for m in now_group.members if m.instance_id == verdict.instance_id), None) if now_group else None
        )
        if now_group is None or member is None or member.terminating:
            return _kept(verdict, Finding.LEAVING, "its instance is no member any more")
        try:
            node = self.cluster.node(verdict.node_name)
        except NotFound:
            return _kept(verdict, Finding.NOT_JOINED, "its node is gone")
        pods = self.cluster.pods_on_node(verdict.node_name)
        verdicts = examine([candidate(member, node, pods)], around)
        [again] = decide(verdicts, self.policy, memory, now_group, needed=(), refreshing=refreshing, now=self.clock())
        return again


def _asked(reservations: tuple[Reservation, ...]) -> set[tuple[str, int, int]]:
    return {(r.reference, r.version, r.pods) for r in reservations}


def _kept(verdict: Verdict, finding: Finding, detail: str) -> Verdict:
    return Verdict(verdict.candidate, finding, detail)
