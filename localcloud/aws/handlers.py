"""How a CloudFormation resource type is written here: three functions over one `Change`, in ministack's own table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Properties = dict[str, Any]
Provisioned = tuple[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Change:
    """What CloudFormation asks for one resource; `old` are the properties before, empty at a creation."""

    properties: Properties
    old: Properties = field(default_factory=dict)
    physical_id: str = ""
    logical_id: str = ""
    stack: str = ""

    def name(self, given_by: str) -> str:
        """The name that the template gives in property `given_by`, else one made as CloudFormation makes it."""
        from ministack.services.cloudformation.provisioners import _physical_name

        name: str = self.properties.get(given_by) or _physical_name(self.stack, self.logical_id)
        return name


def handler(
    *,
    create: Callable[[Change], Provisioned],
    update: Callable[[Change], Provisioned],
    delete: Callable[[Change], None],
) -> dict[str, Any]:
    """The entry of ministack's handler table (`cloudformation/provisioners.py`) for these three functions."""

    def on_create(logical_id: str, properties: Properties, stack: str) -> Provisioned:
        return create(Change(properties=properties, logical_id=logical_id, stack=stack))

    def on_update(physical_id: str, old: Properties, new: Properties, stack: str, logical_id: str) -> Provisioned:
        return update(Change(properties=new, old=old, physical_id=physical_id, logical_id=logical_id, stack=stack))

    def on_delete(physical_id: str, properties: Properties) -> None:
        delete(Change(properties=properties, physical_id=physical_id))

    return {"create": on_create, "update": on_update, "update_with_logical_id": True, "delete": on_delete}


def answered(response: Any) -> dict[str, Any]:
    """The body of a service's answer; ValueError with the service's own words where it refused."""
    status, _, body = response
    if status >= 400:
        raise ValueError(body.decode() if isinstance(body, bytes) else str(body))
    answer: dict[str, Any] = json.loads(body) if body else {}
    return answer
