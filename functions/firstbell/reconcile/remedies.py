"""What an operator can do about each reason for being short: the words of Capacity Short."""

from __future__ import annotations

from firstbell.capacity.failures import Reason

REMEDIES: dict[Reason, str] = {
    Reason.LAUNCH_SUSPENDED: "Resume the Launch process of the Auto Scaling group.",
    Reason.INSUFFICIENT_CAPACITY: "AWS has no such instances now. Add instance types or zones to the group, or name "
    "fallback pools; it is tried again after the back-off.",
    Reason.SPOT_PRICE: "Raise or remove the group's maximum Spot price, or add an On-Demand fallback pool.",
    Reason.QUOTA: "Ask AWS for a higher quota (Service Quotas, Amazon EC2). Other pools would meet it too, so nothing "
    "falls back.",
    Reason.LAUNCH_FAILED: "Look at the group's activity history: its launch template, subnets or role may be wrong.",
    Reason.NEVER_JOINED: "Instances run but no node joined: look at the instance's system log (bootstrap, role, "
    "security group, cluster endpoint).",
    Reason.MAX_SIZE: "Raise the group's MaxSize, or spread the classes over more pools.",
    Reason.OTHER_WRITER: "Something else lowers this group's desired capacity: look for scaling policies, scheduled "
    "actions or another autoscaler, in the group's activity history.",
    Reason.BUSY_GROUP: "Auto Scaling refuses changes while another one runs; it is tried again each minute.",
    Reason.NO_SUCH_GROUP: "The group that firstbell.yaml names does not exist in this region: correct the name.",
    Reason.UNPLACEABLE: "Room there may be, but not where these pods can go: compare their zones, volumes and "
    "tolerations with the group's.",
    Reason.PAUSED: "Firstbell is paused: `firstbell resume` lets it act again.",
}
