"""The control door, /_localcloud/fleet/...: what tests and the demo ask for and AWS has no call for. JSON both ways.

GET  /_localcloud/fleet/health
GET  /_localcloud/fleet/state                     groups with their members, machines with their nodes
POST /_localcloud/fleet/launch-failures           {"group", "kind", "count"?, "zones"?, "instance_types"?}
DELETE /_localcloud/fleet/launch-failures         {"group"}
POST /_localcloud/fleet/unjoining                 {"group", "count"}: the next launches never become nodes
POST /_localcloud/fleet/throttle                  {"action", "count"}
POST /_localcloud/fleet/boot-seconds              {"group", "seconds"}
POST /_localcloud/fleet/spot-interruption         {"instance_id", "notice_seconds"?}
POST /_localcloud/fleet/rebalance-recommendation  {"instance_id"}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localcloud.fleet import machines
from localcloud.fleet.errors import Refused
from localcloud.fleet.faults import LaunchFault
from localcloud.fleet.fleet import Fleet
from localcloud.fleet.state import Machine

PREFIX = "/_localcloud/fleet/"


def knock(fleet: Fleet, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Answer one request of the door. Refused (404 or 400) where it asks for what is not there."""
    wish = _WISHES.get((method, path.removeprefix(PREFIX)))
    if wish is None:
        known = ", ".join(f"{verb} {name}" for verb, name in _WISHES)
        raise Refused("NotFound", f"the fleet's door knows {known}", 404)
    try:
        with fleet.timers.lock:
            return wish(fleet, body)
    except KeyError as missing:
        raise Refused("BadRequest", f"missing or unknown: {missing}") from None


def _state(fleet: Fleet, _: dict[str, Any]) -> dict[str, Any]:
    return {
        "groups": {
            group.name: {
                "desired": group.desired,
                "members": {member.instance_id: member.lifecycle for member in group.members.values()},
            }
            for group in fleet.groups.values()
        },
        "machines": {
            machine.instance_id: {
                "group": machine.group_name,
                "state": machine.state,
                "node": machine.node_name,
                "joined": machine.joined,
                "zone": machine.zone,
            }
            for machine in fleet.machines.values()
        },
    }


def _fail_launches(fleet: Fleet, body: dict[str, Any]) -> dict[str, Any]:
    fault = LaunchFault(
        kind=body["kind"],
        remaining=body.get("count"),
        zones=tuple(body.get("zones", ())),
        instance_types=tuple(body.get("instance_types", ())),
    )
    fleet.faults.launches.setdefault(body["group"], []).append(fault)
    return {}


def _clear_launches(fleet: Fleet, body: dict[str, Any]) -> dict[str, Any]:
    fleet.faults.launches.pop(body["group"], None)
    if group := fleet.groups.get(body["group"]):
        group.retry_at = 0.0
        fleet.reconcile_soon(group)
    return {}


def _leave_out(fleet: Fleet, body: dict[str, Any]) -> dict[str, Any]:
    fleet.faults.unjoining[body["group"]] = int(body["count"])
    return {}


def _throttle(fleet: Fleet, body: dict[str, Any]) -> dict[str, Any]:
    fleet.faults.throttled[body["action"]] = int(body["count"])
    return {}


def _boot_seconds(fleet: Fleet, body: dict[str, Any]) -> dict[str, Any]:
    fleet.faults.boot_seconds[body["group"]] = float(body["seconds"])
    return {}


def _interrupt(fleet: Fleet, body: dict[str, Any]) -> dict[str, Any]:
    seconds = float(body.get("notice_seconds", machines.SPOT_NOTICE_SECONDS))
    machines.interrupt_spot(fleet, _machine(fleet, body), notice_seconds=seconds)
    return {}


def _recommend(fleet: Fleet, body: dict[str, Any]) -> dict[str, Any]:
    machines.recommend_rebalance(fleet, _machine(fleet, body))
    return {}


def _machine(fleet: Fleet, body: dict[str, Any]) -> Machine:
    return fleet.machines[body["instance_id"]]


_WISHES: dict[tuple[str, str], Callable[[Fleet, dict[str, Any]], dict[str, Any]]] = {
    ("GET", "health"): lambda fleet, body: {"status": "ok"},
    ("GET", "state"): _state,
    ("POST", "launch-failures"): _fail_launches,
    ("DELETE", "launch-failures"): _clear_launches,
    ("POST", "unjoining"): _leave_out,
    ("POST", "throttle"): _throttle,
    ("POST", "boot-seconds"): _boot_seconds,
    ("POST", "spot-interruption"): _interrupt,
    ("POST", "rebalance-recommendation"): _recommend,
}
