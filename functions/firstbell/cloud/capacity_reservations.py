"""Which instances run in a capacity reservation: its own warning names none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.cloud.refusals import translated

if TYPE_CHECKING:
    from firstbell.cloud.session import Clients

LIVING = ["pending", "running", "stopping", "shutting-down"]


class CapacityReservations:
    """Raises RetryLater, AccessDenied or Refused."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def instances(self, reservation_id: str) -> list[str]:
        """Ids of the living instances in the reservation (or capacity block), page by page.

        https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
        """
        with translated("ec2:DescribeInstances"):
            pages = self._clients.ec2.get_paginator("describe_instances").paginate(
                Filters=[
                    {"Name": "capacity-reservation-id", "Values": [reservation_id]},
                    {"Name": "instance-state-name", "Values": LIVING},
                ]
            )
            return [
                instance["InstanceId"]
                for page in pages
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
            ]
