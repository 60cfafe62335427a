"""The smaller AWS adapters in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firstbell.cloud.bus import Bus, OutcomeEvent
from firstbell.cloud.eks import ClusterEndpoint, Eks, NodeGroup
from firstbell.cloud.instance_types import InstanceTypeAnswer, InstanceTypes
from firstbell.cloud.instances import Instances
from firstbell.cloud.load_balancers import LoadBalancers
from firstbell.cloud.refusals import Refused
from firstbell.errors import NotFound
from tests.fakes.faults import Call, Faults

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from firstbell.capacity.instance_types import InstanceTypeFacts


class _Recorder:
    def __init__(self, faults: Faults | None) -> None:
        self.faults = faults or Faults()
        self.calls: list[Call] = []

    def _called(self, name: str, *args: Any) -> Any:
        return self.faults.around(self.calls, name, *args)


class FakeBus(_Recorder, Bus):
    """`events` holds what was published, in order."""

    def __init__(self, faults: Faults | None = None) -> None:
        super().__init__(faults)
        self.events: list[OutcomeEvent] = []

    def publish(self, events: Sequence[OutcomeEvent]) -> None:
        """Like the real one, makes no call for no events."""
        if events:
            with self._called("publish", tuple(events)):
                self.events += events

    def details(self, detail_type: str) -> list[dict[str, Any]]:
        """Details of the published events of one type."""
        return [dict(event.detail) for event in self.events if event.detail_type == detail_type]


class FakeInstanceTypes(_Recorder, InstanceTypes):
    """Knows the types that a test gives it."""

    def __init__(self, facts: Iterable[InstanceTypeFacts] = (), faults: Faults | None = None) -> None:
        super().__init__(faults)
        self.facts = {fact.name: fact for fact in facts}

    def describe(self, types: Collection[str]) -> InstanceTypeAnswer:
        with self._called("describe", tuple(types)):
            return InstanceTypeAnswer(
                facts={name: self.facts[name] for name in types if name in self.facts},
                unknown=frozenset(types) - self.facts.keys(),
            )


class FakeInstances(_Recorder, Instances):
    """`ended` holds the ids in order; those that a test puts into `unknown` are no instances of EC2's."""

    def __init__(self, faults: Faults | None = None) -> None:
        super().__init__(faults)
        self.ended: list[str] = []
        self.unknown: set[str] = set()

    def terminate(self, instance_id: str) -> None:
        with self._called("terminate", instance_id):
            if instance_id in self.unknown:
                raise NotFound(f"the instance {instance_id} does not exist")
            self.ended.append(instance_id)


class FakeEks(_Recorder, Eks):
    """Node groups by (cluster, name)."""

    def __init__(self, nodegroups: Iterable[tuple[str, NodeGroup]] = (), faults: Faults | None = None) -> None:
        super().__init__(faults)
        self.nodegroups = {(cluster, nodegroup.name): nodegroup for cluster, nodegroup in nodegroups}
        self.tokens_minted = 0

    def describe(self, cluster: str) -> ClusterEndpoint:
        with self._called("describe", cluster):
            return ClusterEndpoint(endpoint="https://127.0.0.1:1", ca_data="")

    def token_source(self, cluster: str) -> Callable[[], str]:
        def mint() -> str:
            self.tokens_minted += 1
            return f"token-{self.tokens_minted}-for-{cluster}"

        return mint

    def nodegroup(self, cluster: str, name: str) -> NodeGroup:
        with self._called("nodegroup", cluster, name):
            return self._nodegroup(cluster, name)

    def group_of_nodegroup(self, cluster: str, name: str) -> str:
        with self._called("group_of_nodegroup", cluster, name):
            return self._nodegroup(cluster, name).group

    def update_nodegroup_min_size(self, cluster: str, name: str, instances: int, desired: int | None = None) -> None:
        with self._called("update_nodegroup_min_size", cluster, name, instances, desired):
            nodegroup = self._nodegroup(cluster, name)
            if instances > (nodegroup.desired if desired is None else desired):
                raise Refused("eks:UpdateNodegroupConfig", "InvalidParameterException", "minimum above desired size")
            self.nodegroups[cluster, name] = replace(
                nodegroup, min_size=instances, desired=nodegroup.desired if desired is None else desired
            )

    def _nodegroup(self, cluster: str, name: str) -> NodeGroup:
        if (cluster, name) not in self.nodegroups:
            raise NotFound(f"node group {name} of cluster {cluster}")
        return self.nodegroups[cluster, name]


class FakeLoadBalancers(_Recorder, LoadBalancers):
    """`deregistered` holds (target group ARN, instance id) in order."""

    def __init__(self, faults: Faults | None = None) -> None:
        super().__init__(faults)
        self.deregistered: list[tuple[str, str]] = []
        self.states: dict[tuple[str, str], str] = {}
        """(target group ARN, instance id) -> state."""

    def deregister(self, target_group_arns: Sequence[str], instance_id: str) -> None:
        for arn in target_group_arns:
            with self._called("deregister", arn, instance_id):
                self.deregistered.append((arn, instance_id))
                self.states[arn, instance_id] = "draining"

    def target_states(self, target_group_arn: str, instance_ids: Sequence[str]) -> dict[str, str]:
        with self._called("target_states", target_group_arn, tuple(instance_ids)):
            found = {i: self.states.get((target_group_arn, i)) for i in instance_ids}
            return {i: state for i, state in found.items() if state is not None}
