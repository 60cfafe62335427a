"""Target groups: students' connections leave a node that is about to go before its pods do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstbell.cloud.refusals import Refused, translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firstbell.cloud.session import Clients

GONE = frozenset({"TargetGroupNotFound", "InvalidTarget"})
"""The target group, or the instance in it, is not there any more: nothing is left to do."""


class LoadBalancers:
    """Raises RetryLater, AccessDenied and Refused."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def deregister(self, target_group_arns: Sequence[str], instance_id: str) -> None:
        """Take the instance out of each target group, on every port; its connections drain. Repeating it is harmless.
        https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_DeregisterTargets.html
        """
        for arn in target_group_arns:
            try:
                with translated("elasticloadbalancing:DeregisterTargets"):
                    self._clients.elbv2.deregister_targets(TargetGroupArn=arn, Targets=[{"Id": instance_id}])
            except Refused as error:
                if error.code not in GONE:
                    raise

    def target_states(self, target_group_arn: str, instance_ids: Sequence[str]) -> dict[str, str]:
        """Instance id -> `healthy`, `draining`, `unused`... A target group that is gone knows none."""
        try:
            with translated("elasticloadbalancing:DescribeTargetHealth"):
                answer = self._clients.elbv2.describe_target_health(
                    TargetGroupArn=target_group_arn, Targets=[{"Id": instance_id} for instance_id in instance_ids]
                )
        except Refused as error:
            if error.code not in GONE:
                raise
            return {}
        return {
            health.get("Target", {}).get("Id", ""): health.get("TargetHealth", {}).get("State", "")
            for health in answer["TargetHealthDescriptions"]
        }
