"""What one run reads of the cluster: once, page by page, and shared by every pool that the run looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.capacity.daemonsets import daemonset_overhead
from firstbell.capacity.sight import UNSEEN, PoolSight, pods_by_node, see_pool, settling
from firstbell.cluster.cordons import without_mark
from firstbell.cluster.nodes import with_attach_limits
from firstbell.errors import AccessDenied, NotFound, RetryLater

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from firstbell.capacity.cluster_view import DaemonSet, Node, Pod
    from firstbell.capacity.groups import Group
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.resources import Resources
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.settings import Cluster


DAEMONSETS_KEPT_SECONDS = 300.0


class RecentDaemonSets:
    """The cluster's DaemonSets, asked for again after five minutes: a warm environment saves a call of most runs.

    They are needed for nodes of a type that has not been seen yet; what live nodes show goes before them.
    """

    def __init__(self, connect: Callable[[], KubernetesCluster], clock: Callable[[], float]) -> None:
        self._connect = connect
        self._clock = clock
        self._kept: list[DaemonSet] = []
        self._read_at: float | None = None

    def __call__(self) -> list[DaemonSet]:
        now = self._clock()
        if self._read_at is None or now - self._read_at >= DAEMONSETS_KEPT_SECONDS:
            self._kept, self._read_at = self._connect().daemonsets(), now
        return self._kept


class ClusterReading:
    """Nodes, pods and DaemonSets as they were when first asked for. An error is kept: it is never "no nodes"."""

    def __init__(
        self,
        connect: Callable[[], KubernetesCluster],
        settings: Cluster,
        recent_daemonsets: RecentDaemonSets | None = None,
    ) -> None:
        self._connect = connect
        self._settings = settings
        self._recent_daemonsets = recent_daemonsets
        self._nodes: list[Node] | None = None
        self._on_node: dict[str, list[Pod]] = {}
        self._daemonsets: list[DaemonSet] | None = None
        self.failure: RetryLater | AccessDenied | NotFound | None = None
        """Why the cluster could not be read; None while it could."""

    def of_pool(
        self,
        pool: Pool,
        group: Group,
        *,
        expected_overhead: Mapping[str, Resources],
        now: float,
        idle_marks_lifted: bool = False,
    ) -> PoolSight:
        """The pool's part of the cluster, perhaps as it would be without idle's cordons; `UNSEEN` where it could not be
        read."""
        nodes = self._read()
        if nodes is None:
            return UNSEEN
        if idle_marks_lifted:
            nodes = [without_mark(node, "idle") for node in nodes]
        return see_pool(
            pool,
            self._settings.pools,
            group,
            nodes,
            self._on_node,
            system_namespaces=self._settings.system_namespaces,
            expected_overhead={
                **expected_overhead,
                **self._overhead_of_young(nodes, pool, group, expected_overhead, now),
            },
            now=now,
        )

    def _overhead_of_young(
        self, nodes: list[Node], pool: Pool, group: Group, known: Mapping[str, Resources], now: float
    ) -> dict[str, Resources]:
        """Instance type -> what DaemonSets will take of nodes on which their pods may still be missing.

        Computed, as for nodes to come, for types of which no settled node is remembered.
        """
        members = {m.instance_id for m in group.members}
        young = {n.instance_type: n for n in nodes if n.instance_id in members and n.ready and settling(n, now)}
        return {
            kind: daemonset_overhead(self.daemonsets(), node.labels, pool.taints)
            for kind, node in young.items()
            if kind not in known
        }

    def replace_node(self, node: Node) -> None:
        """Takes in a node that was changed since it was read."""
        self._nodes = [node if known.name == node.name else known for known in self._nodes or ()]

    def pending_pods(self) -> list[Pod] | None:
        """Pods that no node has been found for; None where the cluster has not been read."""
        return None if self._nodes is None else list(self._on_node.get("", ()))

    def daemonsets(self) -> list[DaemonSet]:
        """Every DaemonSet; none where the cluster could not be read. Only a pool without a live node needs them."""
        if self._daemonsets is None and self._read() is not None:
            try:
                read = self._recent_daemonsets or self._connect().daemonsets
                self._daemonsets = read()
            except (RetryLater, AccessDenied, NotFound) as error:
                self.failure = error
        return self._daemonsets or []

    def _read(self) -> list[Node] | None:
        if self._nodes is None and self.failure is None:
            try:
                cluster = self._connect()
                nodes = cluster.nodes()
                pods = cluster.pods()
                if any(pod.requests.volumes for pod in pods):
                    nodes = with_attach_limits(nodes, cluster.attach_limits())
                    waiting = cluster.with_bound_volumes([pod for pod in pods if not pod.bound])
                    pods = [*(pod for pod in pods if pod.bound), *waiting]
            except (RetryLater, AccessDenied, NotFound) as error:
                self.failure = error
            else:
                self._nodes, self._on_node = nodes, pods_by_node(pods)
        return self._nodes
