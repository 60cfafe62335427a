"""How large a node of an instance type is, from recordings of real nodes (recordings/*.yaml) and from nothing else.

Each recording names its public address and holds the lines themselves; this module only reads them. A type that nobody
recorded has no size here, so that no formula can creep in.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "recordings"
EBS = "attachable-volumes-aws-ebs"
GPU = "nvidia.com/gpu"
RANGE = {
    "cpu_capacity_low": "cpu",
    "cpu_allocatable_low": "cpu",
    "mem_capacity_low": "memory",
    "mem_allocatable_low": "memory",
}

_ENTRY = re.compile(r"""^\s*["']?([\w./-]+)["']?:\s*["']?([\w.]+)""")
_HEADER = re.compile(r"""^["']?(capacity|allocatable)["']?:\s*\{?\s*$""", re.IGNORECASE)


class UnknownType(Exception):
    """No real node of this instance type was recorded."""


@dataclass(frozen=True)
class Recording:
    """One real node: resource -> quantity as Kubernetes writes it. `max_pods` is what the AMI sets by itself."""

    name: str
    instance_type: str
    address: str
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    architecture: str = "amd64"
    os_image: str = "Amazon Linux 2023"
    kubelet: str = ""
    overridden_max_pods: int | None = None
    max_pods: int | None = None
    ebs_attach_limit: int | None = None


@dataclass(frozen=True)
class NodeSize:
    """What a node of the type reports. Quantities as Kubernetes writes them."""

    instance_type: str
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    architecture: str
    os_image: str
    ebs_attach_limit: int | None
    recorded_as: str = field(compare=False)

    def with_max_pods(self, pods: int) -> NodeSize:
        """The same node with the kubelet's maxPods set; the reserved memory stays, as on the EKS AMIs.

        https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/kubelet/config.go
        """
        return NodeSize(
            self.instance_type,
            {**self.capacity, "pods": str(pods)},
            {**self.allocatable, "pods": str(pods)},
            self.architecture,
            self.os_image,
            self.ebs_attach_limit,
            self.recorded_as,
        )


def parse_lines(lines: str, form: str) -> tuple[dict[str, str], dict[str, str]]:
    """Capacity and allocatable from recorded lines. `form` is describe, status or range (the lower bound is taken)."""
    blocks: dict[str, dict[str, str]] = {"capacity": {}, "allocatable": {}}
    if form == "range":
        for key, value in (match.groups() for line in lines.splitlines() if (match := _ENTRY.match(line))):
            if key in RANGE:
                blocks["capacity" if "capacity" in key else "allocatable"][RANGE[key]] = _whole_kibibytes(value)
    else:
        block: dict[str, str] = {}
        for line in lines.splitlines():
            if header := _HEADER.match(line):
                block = blocks[header[1].lower()]
            elif entry := _ENTRY.match(line):
                block[entry[1]] = _whole_cores(entry[2]) if entry[1] == "cpu" else entry[2]
    return blocks["capacity"] or dict(blocks["allocatable"]), blocks["allocatable"]


def _whole_kibibytes(quantity: str) -> str:
    return (
        f"{int(float(quantity.removesuffix('Gi')) * 1024**2)}Ki" if quantity.endswith("Gi") else _whole_cores(quantity)
    )


def _whole_cores(quantity: str) -> str:
    """3.92 -> 3920m, 4.0 -> 4: tables write cores as decimals, kubelets don't."""
    if "." not in quantity:
        return quantity
    millicores = round(float(quantity) * 1000)
    return str(millicores // 1000) if millicores % 1000 == 0 else f"{millicores}m"


def read_recording(path: Path) -> Recording:
    raw: dict[str, Any] = yaml.safe_load(path.read_text())
    capacity, allocatable = parse_lines(raw["lines"], raw["form"])
    if "gpus" in raw:
        capacity[GPU] = allocatable[GPU] = str(raw["gpus"])
    attached = capacity.pop(EBS, None), allocatable.pop(EBS, None)
    published = raw.get("published_max_pods", {}).get("line", "").split()
    return Recording(
        name=path.stem,
        instance_type=raw["instance_type"],
        address=raw["address"],
        capacity=capacity,
        allocatable=allocatable,
        architecture=raw.get("architecture", "amd64"),
        os_image=raw.get("os_image", "Amazon Linux 2023"),
        kubelet=raw.get("kubelet", ""),
        overridden_max_pods=raw.get("overridden_max_pods"),
        max_pods=int(published[1]) if published else None,
        ebs_attach_limit=raw.get("ebs_attach_limit") or (int(attached[1]) if attached[1] else None),
    )


@cache
def recordings() -> tuple[Recording, ...]:
    """Every recorded node, the preferred one of a type first (by file name)."""
    return tuple(read_recording(path) for path in sorted(FOLDER.glob("*.yaml")))


def recorded_types() -> tuple[str, ...]:
    return tuple(sorted({recording.instance_type for recording in recordings()}))


@cache
def node_size(instance_type: str) -> NodeSize:
    """The size of a node of this type. UnknownType names the types that are recorded."""
    by_type: defaultdict[str, list[Recording]] = defaultdict(list)
    for recording in recordings():
        by_type[recording.instance_type].append(recording)
    if instance_type not in by_type:
        raise UnknownType(f"no recorded node of type {instance_type}; recorded are {', '.join(recorded_types())}")
    found = by_type[instance_type]
    first = found[0]
    limit = next((one.ebs_attach_limit for one in found if one.ebs_attach_limit is not None), None)
    size = NodeSize(
        instance_type, first.capacity, first.allocatable, first.architecture, first.os_image, limit, first.name
    )
    return size if first.max_pods is None else size.with_max_pods(first.max_pods)
