"""When the images of pods were there, from the kubelet's events: a stage of the clock that operators ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from firstbell.cluster.times import unix_seconds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from firstbell.cluster.client import ApiServer

_UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PULLED_IN = re.compile(r"\" in ((?:[0-9.]+(?:h|ms|m|us|µs|ns|s))+)")
_PART = re.compile(r"([0-9.]+)(h|ms|m|us|µs|ns|s)")


@dataclass(frozen=True, slots=True)
class ImagePull:
    """The images of one pod. `pulled_at` (Unix seconds) is when the last was there, `seconds` what pulling all took."""

    pulled_at: float
    seconds: float


def image_pulls(api: ApiServer, namespace: str, pod_uids: Collection[str]) -> dict[str, ImagePull]:
    """Pod UID -> its pulls. Events expire after an hour, and a pod without any is absent."""
    wanted = frozenset(pod_uids)

    def parse(raw: Mapping[str, Any]) -> tuple[str, ImagePull] | None:
        uid = (raw.get("involvedObject") or {}).get("uid", "")
        if uid not in wanted:
            return None
        return uid, ImagePull(_happened_at(raw), pull_seconds(raw.get("message") or ""))

    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/events"
    return _joined(api.list_all(path, parse, field_selector="reason=Pulled,involvedObject.kind=Pod"))


def pull_seconds(message: str) -> float:
    """Seconds in kubelet's words (`Successfully pulled image "x" in 3.2s (4s including waiting)`); 0 where the image
    was already present. The duration is Go's (`1m2.5s`, `850ms`)."""
    found = _PULLED_IN.search(message)
    if found is None:
        return 0.0
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(found.group(1)))


def _joined(pulls: Iterable[tuple[str, ImagePull]]) -> dict[str, ImagePull]:
    joined: dict[str, ImagePull] = {}
    for uid, pull in pulls:
        before = joined.get(uid, ImagePull(0.0, 0.0))
        joined[uid] = ImagePull(max(before.pulled_at, pull.pulled_at), before.seconds + pull.seconds)
    return joined


def _happened_at(event: Mapping[str, Any]) -> float:
    """Events of the older API carry lastTimestamp, those of events.k8s.io eventTime."""
    return unix_seconds(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp"))
