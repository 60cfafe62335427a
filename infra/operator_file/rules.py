"""Rules between parts of the operator's file.

They read the document as it was parsed and pass over what has the wrong type, so that a person sees every error of
a file at once, not the next kind after mending the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from infra.operator_file.fields import account_of

Path = tuple[str | int, ...]
Found = TypeVar("Found")
WAYS = ("asg", "nodegroup", "create")


@dataclass(frozen=True)
class Problem:
    """Something wrong: where, what, and what is allowed there."""

    path: Path
    complaint: str
    allowed: str


def broken_rules(document: Any) -> Iterator[Problem]:
    """Every broken rule of a parsed document."""
    clusters = _entries(document, "clusters")
    yield from _repeated(("clusters",), "name", clusters)
    yield from _regions(document, clusters)
    for index, cluster in enumerate(clusters):
        at: Path = ("clusters", index)
        pools = _entries(cluster, "pools")
        names = [_at(pool, "name", str, "") for pool in pools]
        yield from _repeated((*at, "pools"), "name", pools)
        yield from _portals((*at, "portals"), _entries(cluster, "portals"))
        yield from _exactly_one(at, "notify", _at(cluster, "notify", dict, {}), ("email", "topic"))
        default = _at(cluster, "default_pool", str, "")
        if default and default not in names:
            yield Problem((*at, "default_pool"), f"{default!r} is not a pool", _one_of(names))
        if "api_server" not in cluster and any("create" in pool for pool in pools):
            yield Problem((*at, "api_server"), "is missing", "needed here, because a pool has create")
        for position, pool in enumerate(pools):
            yield from _pool((*at, "pools", position), pool, names)
        yield from _circles((*at, "pools"), pools)


def _pool(at: Path, pool: Mapping[str, Any], names: Sequence[str]) -> Iterator[Problem]:
    ways = [way for way in WAYS if pool.get(way) is not None]
    if len(ways) != 1:
        yield Problem(at, f"has {' and '.join(ways) or 'none'} of {', '.join(WAYS)}", "exactly one of them")
    if pool.get("stateful") is True and pool.get("spot") is True:
        yield Problem(
            (*at, "spot"), "true is not allowed for a stateful pool", "false: a Spot interruption would end the work"
        )
    for index, fallback in enumerate(_at(pool, "fallback", list, [])):
        others = [name for name in names if name != pool.get("name")]
        if isinstance(fallback, str) and fallback not in others:
            yield Problem((*at, "fallback", index), f"{fallback!r} is not another pool", _one_of(others))
    create = _at(pool, "create", dict, {})
    low, high = _at(create, "min_size", int, 0), _at(create, "max_size", int, 1)
    if low > high:
        yield Problem((*at, "create", "min_size"), f"{low} is above max_size", f"at most {high}")
    if _at(create, "on_demand_base", int, 0) and pool.get("spot") is not True:
        yield Problem((*at, "create", "on_demand_base"), "is for Spot pools", "0, or spot: true")
    types = _entries(create, "instances")
    yield from _repeated((*at, "create", "instances"), "type", types)
    networking = _at(pool, "networking", dict, {})
    unlike_nodeadm = networking.get("prefix_delegation") is True or networking.get("ipv6") is True
    if create and unlike_nodeadm and networking.get("max_pods") is None:
        allowed = "a number where create meets prefixes or IPv6, such as 110: nodeadm does not know of them"
        yield Problem((*at, "networking", "max_pods"), "is missing", allowed)
    for kind in ("quiet", "up", "events"):
        for index, window in enumerate(_entries(_at(pool, "idle", dict, {}), kind)):
            if "from" in window and window.get("from") == window.get("to"):
                yield Problem(
                    (*at, "idle", kind, index, "to"),
                    f"{window['to']!r} is also its start",
                    "an end that differs from the start; 00:00 is midnight, and a window may pass it",
                )


def _circles(at: Path, pools: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """A pool that its own fallbacks lead back to would hand a shortfall round for ever."""
    fallbacks = {_at(pool, "name", str, ""): _at(pool, "fallback", list, []) for pool in pools}
    for position, pool in enumerate(pools):
        name = _at(pool, "name", str, "")
        reached: set[str] = set()
        frontier = [fallback for fallback in fallbacks[name] if isinstance(fallback, str) and fallback != name]
        while frontier:
            reached.add(current := frontier.pop())
            frontier += [f for f in fallbacks.get(current, []) if isinstance(f, str) and f not in reached]
        if name in reached:
            yield Problem((*at, position, "fallback"), f"leads back to {name!r}", "fallbacks without a circle")


def _portals(at: Path, portals: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    yield from _repeated(at, "name", portals)
    seen: set[tuple[str, str]] = set()
    for index, portal in enumerate(portals):
        sender = (account_of(str(portal.get("principal"))), str(portal.get("source")))
        if sender in seen:
            yield Problem(
                (*at, index),
                f"account {sender[0]} already signals as {sender[1]!r}",
                "one portal for an account and source",
            )
        seen.add(sender)


def _regions(document: Any, clusters: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    region_by_cluster = {_at(c, "name", str, ""): _at(c, "region", str, "") for c in clusters}
    stated = _at(document, "regions", dict, {})
    for region, name in stated.items():
        fitting = [cluster for cluster, home in region_by_cluster.items() if home == region]
        if isinstance(name, str) and name not in fitting:
            yield Problem(("regions", region), f"{name!r} is not a cluster in {region}", _one_of(fitting))
    for region, count in Counter(region_by_cluster.values()).items():
        if region and region not in stated and (stated or count > 1):
            names = [cluster for cluster, home in region_by_cluster.items() if home == region]
            yield Problem(("regions",), f"does not say which cluster {region} is", f"{region}: {_one_of(names)}")


def _repeated(at: Path, key: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, entry in enumerate(entries):
        value = _at(entry, key, str, "")
        if value and value in seen:
            yield Problem((*at, index, key), f"{value!r} is already taken by {at[-1]}[{seen[value]}]", "another one")
        seen.setdefault(value, index)


def _exactly_one(at: Path, name: str, entry: Mapping[str, Any], keys: Sequence[str]) -> Iterator[Problem]:
    if entry and sum(entry.get(key) is not None for key in keys) != 1:
        yield Problem((*at, name), f"has not exactly one of {', '.join(keys)}", "exactly one of them")


def _entries(parent: Any, key: str) -> list[Mapping[str, Any]]:
    """The list under `key`, with an empty mapping where an entry is not one, so that positions stay."""
    return [entry if isinstance(entry, dict) else {} for entry in _at(parent, key, list, [])]


def _at(parent: Any, key: str, kind: type[Found], otherwise: Found) -> Found:
    value = parent.get(key) if isinstance(parent, dict) else None
    return value if isinstance(value, kind) and not (kind is int and isinstance(value, bool)) else otherwise


def _one_of(names: Sequence[str]) -> str:
    return f"one of {', '.join(filter(None, names))}" if any(names) else "none (there is nothing to name)"
