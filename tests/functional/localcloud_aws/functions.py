"""Making small Lambda functions from source text, for the tests beside this file."""

from __future__ import annotations

import io
import json
import time
import uuid
import zipfile
from collections.abc import Callable
from typing import Any, TypeVar

from tests.functional.localcloud_aws.conftest import ACCOUNT, StartedCloud

T = TypeVar("T")


def zipped(source: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("index.py", source)
    return buffer.getvalue()


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def make_role(cloud: StartedCloud, name: str) -> str:
    trust = {"Version": "2012-10-17", "Statement": []}
    role = cloud.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
    arn: str = role["Role"]["Arn"]
    return arn


def make_function(cloud: StartedCloud, source: str, *, role: str | None = None, **settings: Any) -> str:
    """Create a function whose `index.handler` is in `source`; returns its name once it is Active."""
    client = cloud.client("lambda")
    name = unique("function")
    client.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler="index.handler",
        Role=role or f"arn:aws:iam::{ACCOUNT}:role/{name}",
        Code={"ZipFile": zipped(source)},
        **settings,
    )
    eventually(lambda: client.get_function_configuration(FunctionName=name)["State"] == "Active")
    return name


def invoke(cloud: StartedCloud, name: str, event: Any = None) -> Any:
    answer = cloud.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event).encode())
    payload = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        raise AssertionError(payload)
    return payload


def eventually(condition: Callable[[], T], timeout_seconds: float = 20) -> T:
    """Poll until `condition` is truthy and return it; the condition, not a fixed sleep, ends the wait."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        if found := condition():
            return found
        if time.monotonic() > deadline:
            raise AssertionError("the condition did not come true in time")
        time.sleep(0.1)
