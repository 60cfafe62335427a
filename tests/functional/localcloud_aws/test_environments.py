from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import urllib3

from tests.functional.localcloud_aws.conftest import ACCOUNT, StartedCloud, start_cloud
from tests.functional.localcloud_aws.functions import eventually, invoke, make_function, make_role, unique

WHO = """
import os, boto3
from botocore.awsrequest import AWSRequest
def handler(event, context):
    client = boto3.client("sts")
    url = client.generate_presigned_url("get_caller_identity", ExpiresIn=60, HttpMethod="GET")
    return {"arn": client.get_caller_identity()["Arn"], "url": url, "environment": dict(os.environ)}
"""
PROCESS = """
import os, time
calls = 0
def handler(event, context):
    global calls
    calls += 1
    time.sleep(event["seconds"])
    return {"pid": os.getpid(), "calls": calls, "left": context.get_remaining_time_in_millis()}
"""


def test_a_function_calls_as_its_own_role_also_by_a_presigned_url(cloud: StartedCloud) -> None:
    role = unique("prescale-role")
    name = make_function(cloud, WHO, role=make_role(cloud, role))
    answer = invoke(cloud, name)
    expected = f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/{name}"
    assert answer["arn"] == expected
    assert expected in urllib3.request("GET", answer["url"]).data.decode()


def test_a_function_sees_lambdas_variables_and_the_endpoints_of_the_cloud(cloud: StartedCloud) -> None:
    name = make_function(cloud, WHO, MemorySize=256, Environment={"Variables": {"FIRSTBELL_BUS": "b"}})
    seen = invoke(cloud, name)["environment"]
    assert seen["AWS_LAMBDA_FUNCTION_NAME"] == name
    assert seen["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "256"
    assert (seen["AWS_REGION"], seen["FIRSTBELL_BUS"]) == ("us-west-2", "b")
    assert seen["AWS_ENDPOINT_URL"] == cloud.endpoint
    assert seen["AWS_ENDPOINT_URL_AUTO_SCALING"] == seen["AWS_ENDPOINT_URL_EC2"] == cloud.fleet_endpoint
    assert "LOCALCLOUD_FILE" not in seen
    assert seen["AWS_SESSION_TOKEN"]


def test_a_dependency_that_is_not_in_the_zip_is_not_found(cloud: StartedCloud) -> None:
    name = make_function(cloud, "import pydantic\ndef handler(event, context): pass\n")
    with pytest.raises(AssertionError, match=r"No module named .*pydantic"):
        invoke(cloud, name)


def test_a_warm_environment_is_reused_and_concurrent_events_get_processes_of_their_own(cloud: StartedCloud) -> None:
    name = make_function(cloud, PROCESS, Timeout=10)
    first, second = (invoke(cloud, name, {"seconds": 0}) for _ in range(2))
    assert (first["pid"], second["calls"]) == (second["pid"], 2)
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda _: invoke(cloud, name, {"seconds": 1}), range(3)))
    assert len({answer["pid"] for answer in together}) == 3


def test_a_function_is_stopped_at_its_timeout(cloud: StartedCloud) -> None:
    name = make_function(cloud, PROCESS, Timeout=1)
    with pytest.raises(AssertionError, match="Task timed out after 1"):
        invoke(cloud, name, {"seconds": 30})


@pytest.fixture
def own(tmp_path: Path) -> Iterator[StartedCloud]:
    """A cloud to be stopped by the test itself."""
    started = start_cloud(tmp_path, fleet_endpoint="http://127.0.0.1:9")
    yield started
    if started.process.poll() is None:
        started.process.kill()
        started.process.wait(timeout=10)


def test_environments_die_with_a_killed_launcher(own: StartedCloud) -> None:
    pid = invoke(own, make_function(own, PROCESS), {"seconds": 0})["pid"]
    own.process.kill()
    own.process.wait(timeout=10)
    eventually(lambda: not Path(f"/proc/{pid}").exists())


def test_a_terminated_launcher_waits_for_no_function(own: StartedCloud) -> None:
    name = make_function(own, PROCESS, Timeout=60)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(invoke, own, name, {"seconds": 50})
        eventually(lambda: own.get("/_localcloud/environments"))
        own.process.terminate()
        assert own.process.wait(timeout=15) == 0
        assert running.exception() is not None
