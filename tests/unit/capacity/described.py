"""Every instance type that moto carries of ec2:DescribeInstanceTypes: 1,395."""

from __future__ import annotations

import functools
import gzip
import json
from importlib.resources import files
from typing import Any

from firstbell.capacity.allocatable import estimated_allocatable
from firstbell.capacity.density import NodeShape
from firstbell.capacity.instance_types import InstanceTypeFacts, facts_from_description
from firstbell.capacity.pools import Networking
from firstbell.capacity.resources import Resources

GIB = 2**30


@functools.cache
def descriptions() -> dict[str, dict[str, Any]]:
    """As EC2 answers."""
    packed = (files("moto") / "ec2/resources/instance_types.json.gz").read_bytes()
    return dict(json.loads(gzip.decompress(packed)))


@functools.cache
def described() -> dict[str, InstanceTypeFacts]:
    """As the product reads them."""
    return {name: facts_from_description(entry) for name, entry in descriptions().items()}


def facts(name: str) -> InstanceTypeFacts:
    return described()[name]


def node(
    name: str, overhead: Resources | None = None, *, weight: int = 1, networking: Networking | None = None
) -> NodeShape:
    """An estimated node of the type."""
    allocatable = estimated_allocatable(facts(name), networking or Networking())
    return NodeShape(name, allocatable, overhead or Resources(), estimated=True, weight=weight)


def pod(millicores: int = 0, gib: float = 0, *, gpus: int = 0, volumes: int = 0) -> Resources:
    return Resources(cpu_millicores=millicores, memory_bytes=int(gib * GIB), pods=1, gpus=gpus, volumes=volumes)
