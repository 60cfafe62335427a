"""Marks on a node: the patches that cordon it in our name, and that take away no more than we put there.

Two marks may stand on one node (idle, then an interruption). Each records which of the shared fields it set itself, so
somebody else's cordon outlives ours, and removing one mark hands those fields to the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from firstbell.capacity.scheduling import Taint
from firstbell.cluster.times import rfc3339, unix_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from firstbell.capacity.cluster_view import Node

MarkReason = Literal["interruption", "idle"]

EXCLUDED_FROM_LOAD_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers"
"""https://kubernetes.io/docs/reference/labels-annotations-taints/#node-kubernetes-io-exclude-from-external-load-balancers"""

OUT_OF_SERVICE = Taint("node.kubernetes.io/out-of-service", "nodeshutdown", "NoExecute")
"""Detaches the volumes of a node that is surely off.
https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown"""

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
"""https://kubernetes.io/docs/reference/labels-annotations-taints/#node-kubernetes-io-unschedulable"""

_UNSCHEDULABLE = "unschedulable"
_LABEL = "label"


@dataclass(frozen=True, slots=True)
class CordonMark:
    """Why and since when we hold a node back. Times are Unix seconds."""

    reason: MarkReason
    kind: str
    """The taint's value: the kind of interruption (spot, rebalance...), or why a node is idle."""
    since: float
    deadline: float | None = None

    @property
    def taint(self) -> Taint:
        return Taint(_key(self.reason), self.kind, "NoSchedule")


def mark_of(node: Node, reason: MarkReason) -> CordonMark | None:
    """The mark for `reason` that stands on the node, from its annotations."""
    kind = node.annotations.get(_key(reason))
    if kind is None:
        return None
    since, deadline = (_time(node.annotations.get(_key(reason, part))) for part in ("since", "deadline"))
    return CordonMark(reason=reason, kind=kind, since=since or 0.0, deadline=deadline)


def cordon_patch(node: Node, mark: CordonMark) -> dict[str, Any]:
    """The one merge patch that cordons `node`: the full taint list, because a merge patch replaces lists whole, and
    therefore the resourceVersion that the list was read at (a later writer's taint must not be lost: 409, read again).
    """
    set_by_us = set(_set_fields(node, mark.reason))
    if not node.unschedulable:
        set_by_us.add(_UNSCHEDULABLE)
    labels: dict[str, str | None] = {}
    if mark.reason == "interruption" and EXCLUDED_FROM_LOAD_BALANCERS not in node.labels:
        labels[EXCLUDED_FROM_LOAD_BALANCERS] = "true"
        set_by_us.add(_LABEL)
    annotations = {
        _key(mark.reason): mark.kind,
        _key(mark.reason, "since"): rfc3339(mark.since),
        _key(mark.reason, "deadline"): None if mark.deadline is None else rfc3339(mark.deadline),
        _key(mark.reason, "set"): ",".join(sorted(set_by_us)),
    }
    kept = [taint for taint in node.taints if taint.key != mark.taint.key]
    return _patch(node, taints=[*kept, mark.taint], annotations=annotations, labels=labels, unschedulable=True)


def uncordon_patch(node: Node, reason: MarkReason) -> dict[str, Any] | None:
    """The patch that removes the mark for `reason` and what it set; None where no such mark stands."""
    if mark_of(node, reason) is None:
        return None
    ours = set(_set_fields(node, reason))
    annotations: dict[str, str | None] = {_key(reason, part): None for part in ("", "since", "deadline", "set")}
    for other in get_args(MarkReason):
        if other != reason and mark_of(node, other) is not None:
            inherited = ours & {_UNSCHEDULABLE}
            ours -= inherited
            annotations[_key(other, "set")] = ",".join(sorted(inherited.union(_set_fields(node, other))))
    labels: dict[str, str | None] = {EXCLUDED_FROM_LOAD_BALANCERS: None} if _LABEL in ours else {}
    unschedulable = node.unschedulable and _UNSCHEDULABLE not in ours
    taints = _taints_beneath(node, reason, unschedulable=unschedulable)
    return _patch(node, taints=taints, annotations=annotations, labels=labels, unschedulable=unschedulable or None)


def without_mark(node: Node, reason: MarkReason) -> Node:
    """The node as it would take pods if the mark for `reason` were removed now."""
    patch = uncordon_patch(node, reason)
    if patch is None:
        return node
    unschedulable = bool(patch["spec"]["unschedulable"])
    return replace(node, unschedulable=unschedulable, taints=_taints_beneath(node, reason, unschedulable=unschedulable))


def _taints_beneath(node: Node, reason: MarkReason, *, unschedulable: bool) -> tuple[Taint, ...]:
    """The taint that the node controller adds to every cordoned node goes with the cordon, not a moment later."""
    gone = {_key(reason)} if unschedulable else {_key(reason), UNSCHEDULABLE_TAINT}
    return tuple(taint for taint in node.taints if taint.key not in gone)


def out_of_service_patch(node: Node) -> dict[str, Any]:
    """The patch that adds the out-of-service taint, for a node whose instance EC2 says is terminated."""
    kept = [taint for taint in node.taints if taint.key != OUT_OF_SERVICE.key]
    return _patch(
        node, taints=[*kept, OUT_OF_SERVICE], annotations={}, labels={}, unschedulable=node.unschedulable or None
    )


def _patch(
    node: Node,
    *,
    taints: Iterable[Taint],
    annotations: dict[str, str | None],
    labels: dict[str, str | None],
    unschedulable: bool | None,
) -> dict[str, Any]:
    """In a JSON merge patch (RFC 7386) null removes a member; the API server omits `unschedulable: false` anyway."""
    metadata: dict[str, Any] = {"resourceVersion": node.resource_version, "annotations": annotations, "labels": labels}
    return {
        "metadata": {key: value for key, value in metadata.items() if value},
        "spec": {"unschedulable": unschedulable, "taints": [_written(taint) for taint in taints] or None},
    }


def _written(taint: Taint) -> dict[str, str]:
    fields = {"key": taint.key, "value": taint.value, "effect": taint.effect, "timeAdded": taint.time_added}
    return {name: value for name, value in fields.items() if value}


def _key(reason: MarkReason, part: str = "") -> str:
    return f"firstbell.dev/{reason}-{part}" if part else f"firstbell.dev/{reason}"


def _set_fields(node: Node, reason: MarkReason) -> list[str]:
    return [name for name in node.annotations.get(_key(reason, "set"), "").split(",") if name]


def _time(text: str | None) -> float | None:
    """A time of ours; None where it is absent or somebody rewrote it."""
    try:
        return unix_seconds(text) if text else None
    except ValueError:
        return None
