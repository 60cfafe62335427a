"""EC2 instances that no Auto Scaling group looks after any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.cloud.refusals import Refused, translated
from firstbell.errors import NotFound

if TYPE_CHECKING:
    from firstbell.cloud.session import Clients

UNKNOWN = frozenset({"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"})


class Instances:
    """Raises RetryLater, AccessDenied or Refused."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def terminate(self, instance_id: str) -> None:
        """End it; one that ends or has ended already is no error. Raises NotFound where EC2 knows none of that id (any
        more). One at a time: of several with an unknown one among them, EC2 ends none.

        https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_TerminateInstances.html
        """
        try:
            with translated("ec2:TerminateInstances"):
                self._clients.ec2.terminate_instances(InstanceIds=[instance_id])
        except Refused as error:
            if error.code in UNKNOWN:
                raise NotFound(str(error)) from error
            raise
