"""What an operator has to hear of, and in which words: a row a condition, each on one metric of Firstbell's own table.

A condition says what happened, what students feel, and the first thing to do. What AWS itself measures (queues,
functions) is in `alarms.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

PENDING_SECONDS = 180
IDLE_BLOCKED_HOURS = 3
WHY_NOT_SCALED = "why did this pool not scale"
WHAT_HAPPENED_TO_NODE = "what happened to this node"
"""Names of saved queries, which the words below send people to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    name: str
    metric: str
    happened: str
    felt: str
    first: str
    """The first thing to do."""
    statistic: str = "SUM"
    threshold: float = 1
    """Alarms at this much a period, or more."""
    period_minutes: int = 1
    periods: int = 15
    """How many periods are looked at. One event keeps the alarm up for as long, so that it is not over before it is
    read."""
    breaching: int = 1
    """In how many of them."""
    when_absent: bool = False
    """Alarms at less than the threshold, and where nothing is measured at all."""
    students: bool = False
    """Whether students feel it, or will."""

    @property
    def words(self) -> str:
        return f"{self.happened} {self.felt} {self.first}"


CONDITIONS = (
    Condition(
        name="pods-short",
        metric="PodsShort",
        statistic="MAX",
        periods=3,
        breaching=2,
        students=True,
        happened="A pool cannot take all the pods that are reserved in it, and neither can its fallback pools.",
        felt="Students without a place wait on the spawn page until there is one.",
        first=f"Run the saved query '{WHY_NOT_SCALED}': Capacity Short names the reason and its remedy.",
    ),
    Condition(
        name="reservation-late",
        metric="ReservationsLate",
        students=True,
        happened="A class has begun and its reservation is not Ready.",
        felt="Some of its students wait for a node, a minute or more.",
        first="`firstbell status` says what is missing. If nodes are on their way, give the pool more lead_minutes; "
        f"if not, run the saved query '{WHY_NOT_SCALED}'.",
    ),
    Condition(
        name="pods-pending",
        metric="LongestPendingSeconds",
        statistic="MAX",
        threshold=PENDING_SECONDS,
        periods=1,
        students=True,
        happened="A user pod has been Pending for more than three minutes.",
        felt="A student looks at a spawn page that does not move, and JupyterHub gives up after five minutes.",
        first="`kubectl describe pod` on the oldest Pending pod: its last FailedScheduling event says what it lacks.",
    ),
    Condition(
        name="quota-reached",
        metric="QuotaReached",
        happened="AWS refused launches because a quota of the account is used up. No fallback pool can help.",
        felt="The next students find no place.",
        first="Read the quota's name in Capacity Short, ask for more in Service Quotas (Amazon EC2), and end instances "
        "that nobody needs.",
    ),
    Condition(
        name="launch-failures",
        metric="LaunchFailures",
        happened="A group could not launch instances; the alarm names pool and reason.",
        felt="Nothing while a fallback pool takes over; else the next students wait.",
        first="Look at the group's activity history. insufficient-capacity: add types, zones or a fallback pool; "
        "launch-failed: check launch template, subnets and role; never-joined: read the instance's system log.",
    ),
    Condition(
        name="cluster-unseen",
        metric="HeadroomUnknown",
        statistic="MAX",
        periods=5,
        breaching=3,
        happened="The Kubernetes API could not be read. Pools are sized as if their nodes were full.",
        felt="Nothing yet; more nodes than needed may be bought, and readiness is not announced.",
        first="See whether the cluster's endpoint answers, and whether the functions' subnets and security groups "
        "reach it.",
    ),
    Condition(
        name="access-denied",
        metric="ClusterAccessDenied",
        periods=5,
        happened="EKS refused a function: its access entry or one of its verbs is missing.",
        felt="Students keep their places, but interruptions are not drained and headroom is not seen.",
        first="`firstbell doctor`; then `kubectl apply -f infra/rbac.yaml`, and compare the cluster's access entries "
        "with the stack's.",
    ),
    Condition(
        name="drain-late",
        metric="DrainsLate",
        students=True,
        happened="A drain was not over at its deadline.",
        felt="Students on that node lose what they had in memory when the instance goes.",
        first=f"Run the saved query '{WHAT_HAPPENED_TO_NODE}': Drain Incomplete names each pod and why it stayed.",
    ),
    Condition(
        name="pods-forced",
        metric="PodsForced",
        students=True,
        happened="Pods were deleted past their disruption budget or their own grace, because their node was going.",
        felt="Their students lose what was not saved.",
        first=f"Run the saved query '{WHAT_HAPPENED_TO_NODE}' for their names, tell those students, and see whether "
        "the pool belongs on Spot at all.",
    ),
    Condition(
        name="cordon-failures",
        metric="CordonFailures",
        happened="A node that is going could not be cordoned; it is tried again every few seconds.",
        felt="New students may be placed on a node that is about to go.",
        first="Cordon it by hand (`kubectl cordon`), then read the error in the log of the interruption function.",
    ),
    Condition(
        name="ledger-errors",
        metric="LedgerErrors",
        periods=5,
        breaching=2,
        happened="DynamoDB failed runs of Firstbell, several minutes in a row.",
        felt="Nothing yet, but signals wait in retries and reservations do not start.",
        first="Read the error in the functions' logs. Throttling passes; a refusal means that the table or the "
        "functions' policies were changed: deploy again.",
    ),
    Condition(
        name="tick-stopped",
        metric="TickRuns",
        periods=5,
        breaching=5,
        when_absent=True,
        happened="The tick has not come to its end for five minutes.",
        felt="Students of classes that begin now find no nodes: reservations do not start, and nothing is released.",
        first="See whether the tick's schedule is enabled and its role may invoke, then read the last error in the "
        "tick's log.",
    ),
    Condition(
        name="idle-stopped",
        metric="IdleRuns",
        period_minutes=5,
        periods=4,
        breaching=4,
        when_absent=True,
        happened="Idle nodes have not been looked at for twenty minutes.",
        felt="Nothing; empty nodes cost money.",
        first="See whether the schedule of the idle function is enabled, then read the last error in its log.",
    ),
    Condition(
        name="idle-blocked",
        metric="IdleBlockedSeconds",
        statistic="MAX",
        threshold=IDLE_BLOCKED_HOURS * 3600,
        period_minutes=5,
        periods=1,
        happened=f"An idle node could not be removed for {IDLE_BLOCKED_HOURS} hours.",
        felt="Nothing; the node costs money.",
        first="Pool Kept names the pods, or the setting of the group, that block it: move or delete those pods.",
    ),
)
