"""The Auto Scaling API: an action's name -> what it does with the fleet and the parsed request; it answers or refuses.

https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Operations.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from localcloud.fleet.api.groups import GROUP_ACTIONS
from localcloud.fleet.api.hooks import HOOK_ACTIONS
from localcloud.fleet.api.instances import INSTANCE_ACTIONS
from localcloud.fleet.api.shown import SHOWN_ACTIONS
from localcloud.fleet.errors import Refused
from localcloud.fleet.fleet import Fleet

Action = Callable[[Fleet, Mapping[str, Any]], dict[str, Any]]

ACTIONS: dict[str, Action] = {**GROUP_ACTIONS, **INSTANCE_ACTIONS, **HOOK_ACTIONS, **SHOWN_ACTIONS}


def act(fleet: Fleet, action: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Do one action. An action that AWS has and the fleet has not is refused in words of our own."""
    if action not in ACTIONS:
        raise Refused("InvalidAction", f"localcloud: the action {action} is not valid for this web service here")
    return ACTIONS[action](fleet, request)
