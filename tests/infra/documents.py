"""Operator's files for tests: a small right one, to be changed at one place."""

from __future__ import annotations

import copy
from typing import Any

import yaml

API_SERVER = {
    "endpoint": "https://example.test",
    "certificate_authority": "Y2E=",
    "service_cidr": "10.100.0.0/16",
}
CREATE = {
    "subnets": ["subnet-0a1b2c3d"],
    "security_groups": ["sg-0a1b2c3d"],
    "ami": "ami-0a1b2c3d",
    "instances": [{"type": "m5.xlarge"}],
    "max_size": 20,
}


def pool(name: str = "users", **changes: Any) -> dict[str, Any]:
    return {"name": name, "pod": {"cpu": "500m", "memory": "2Gi"}, "asg": f"{name}-group", **changes}


def created(name: str = "users", **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "pod": {"cpu": "500m", "memory": "2Gi"},
        "create": {**copy.deepcopy(CREATE), **changes.pop("create", {})},
        **changes,
    }


def portal(**changes: Any) -> dict[str, Any]:
    return {
        "name": "timetable",
        "principal": "111122223333",
        "source": "edu.example.timetable",
        "max_pods": 600,
        "max_reserved_hours": 12,
        **changes,
    }


def cluster(name: str = "hub", region: str = "us-west-2", **changes: Any) -> dict[str, Any]:
    return {"name": name, "region": region, "default_pool": "users", "pools": [pool()], **changes}


def text(*clusters: dict[str, Any], **changes: Any) -> str:
    """YAML of a file with these clusters (one small one if none)."""
    return yaml.safe_dump({"clusters": list(clusters) or [cluster()], **changes}, sort_keys=False)
