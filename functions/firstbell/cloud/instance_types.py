"""What EC2 says about instance types. It never changes for a type, so an environment asks once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstbell.capacity.instance_types import facts_from_description
from firstbell.cloud.refusals import translated

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from firstbell.capacity.instance_types import InstanceTypeFacts
    from firstbell.cloud.session import Clients

TYPES_PER_CALL = 100


@dataclass(frozen=True, slots=True)
class InstanceTypeAnswer:
    """Facts of the known types, and the names that EC2 does not know in this region (case 47: never a guess)."""

    facts: Mapping[str, InstanceTypeFacts]
    unknown: frozenset[str]


class InstanceTypes:
    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._known: dict[str, InstanceTypeFacts] = {}

    def describe(self, types: Collection[str]) -> InstanceTypeAnswer:
        """Asked by filter, not by name: one name that EC2 does not know would refuse a whole call by name.
        Raises RetryLater, AccessDenied."""
        asked = sorted(set(types) - self._known.keys())
        for start in range(0, len(asked), TYPES_PER_CALL):
            self._read(asked[start : start + TYPES_PER_CALL])
        return InstanceTypeAnswer(
            facts={name: self._known[name] for name in types if name in self._known},
            unknown=frozenset(types) - self._known.keys(),
        )

    def _read(self, names: list[str]) -> None:
        with translated("ec2:DescribeInstanceTypes"):
            pages = self._clients.ec2.get_paginator("describe_instance_types").paginate(
                Filters=[{"Name": "instance-type", "Values": names}]
            )
            for page in pages:
                self._known |= {str(d["InstanceType"]): facts_from_description(d) for d in page["InstanceTypes"]}
