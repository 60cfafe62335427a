"""Ending instances, on moto."""

from __future__ import annotations

import pytest

from firstbell.cloud.instances import Instances
from firstbell.cloud.session import Clients
from firstbell.errors import NotFound


def test_an_instance_is_ended_and_ending_it_again_is_no_error(clients: Clients) -> None:
    launched = clients.ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1)
    [instance_id] = [instance["InstanceId"] for instance in launched["Instances"]]
    Instances(clients).terminate(instance_id)
    Instances(clients).terminate(instance_id)
    [found] = clients.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"]
    assert found["State"]["Name"] == "terminated"


def test_an_instance_that_ec2_does_not_know_is_said_to_be_gone(clients: Clients) -> None:
    with pytest.raises(NotFound):
        Instances(clients).terminate("i-0123456789abcdef0")
