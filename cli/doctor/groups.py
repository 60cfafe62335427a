"""Settings of Auto Scaling groups that fight us."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from cli.doctor.findings import Finding
from firstbell.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cli.doctor.asking import Aws
    from cli.doctor.findings import Examination
    from firstbell.capacity.pools import Pool

CA_DISCOVERY = "k8s.io/cluster-autoscaler/enabled"
CA_TEMPLATE = "k8s.io/cluster-autoscaler/node-template/"
"""https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md"""
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """A group's settings, as far as they can fight us."""

    name: str
    max_size: int = 1
    zones: tuple[str, ...] = ()
    suspended: frozenset[str] = frozenset()
    capacity_rebalance: bool = False
    weighted: bool = False
    spot: bool = False
    protects_newcomers: bool = False
    longest_life_seconds: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)
    terminate_hooks: tuple[str, ...] | None = ()
    """None = could not be read; so below."""
    scale_in_policies: tuple[str, ...] | None = ()
    scheduled_actions: tuple[str, ...] | None = ()


def examine_groups(
    examination: Examination, aws: Aws, cluster: str, pools: tuple[Pool, ...], group_name: Callable[[Pool], str]
) -> None:
    for pool in pools:
        absent = f"Correct the name in firstbell.yaml, or make {pool.group or pool.nodegroup}."
        read = partial(_of_pool, examination, aws, pool, group_name)
        settings = examination.read("group", pool.name, read, remedy=absent)
        if settings is not None:
            examination.add(fights(pool, settings, cluster))


def fights(pool: Pool, group: GroupSettings, cluster: str) -> list[Finding]:
    """Everything about the group that works against its pool. Pure."""
    return [
        *_launching(pool, group),
        *_ending(pool, group),
        *_autoscaler(pool, group, cluster),
        *_draining(pool, group),
    ]


def _launching(pool: Pool, group: GroupSettings) -> list[Finding]:
    found = []
    if "Launch" in group.suspended:
        remedy = f"aws autoscaling resume-processes --auto-scaling-group-name {group.name} --scaling-processes Launch"
        found.append(_error(group, "its Launch process is suspended: nothing is launched", remedy))
    if not group.max_size:
        found.append(_error(group, "its MaxSize is 0: nothing is launched", "Raise its MaxSize."))
    if pool.stateful and (group.spot or pool.spot):
        problem = f"it launches Spot instances and {pool.name} is stateful: notebooks die at two minutes' notice"
        found.append(_error(group, problem, "Use On-Demand instances for this pool, or say `stateful: false`."))
    return found


def _ending(pool: Pool, group: GroupSettings) -> list[Finding]:
    """What ends instances without asking who works there."""
    found = []
    aws = f"--auto-scaling-group-name {group.name}"
    if "AZRebalance" not in group.suspended and len(group.zones) > 1:
        problem = "AZRebalance ends busy instances to even out its zones"
        found.append(
            _warning(group, problem, f"aws autoscaling suspend-processes {aws} --scaling-processes AZRebalance")
        )
    if group.capacity_rebalance and (pool.stateful or not pool.nodegroup):
        problem = (
            "CapacityRebalance ends instances on a mere recommendation, and keeps us from replacing them at a notice"
        )
        found.append(
            _warning(group, problem, f"aws autoscaling update-auto-scaling-group {aws} --no-capacity-rebalance")
        )
    for policy in group.scale_in_policies or ():
        problem = f"the policy {policy} scales in: it lowers desired and ends busy nodes"
        found.append(_error(group, problem, f"aws autoscaling delete-policy {aws} --policy-name {policy}"))
    for action in group.scheduled_actions or ():
        problem = f"the scheduled action {action} sets its size, whatever is reserved"
        remedy = f"aws autoscaling delete-scheduled-action {aws} --scheduled-action-name {action}"
        found.append(_warning(group, problem, remedy))
    if group.longest_life_seconds and pool.stateful:
        problem = f"instances are replaced when {group.longest_life_seconds // 86400} days old, whoever works there"
        remedy = f"aws autoscaling update-auto-scaling-group {aws} --max-instance-lifetime 0"
        found.append(_warning(group, problem, remedy))
    if group.protects_newcomers and pool.idle:
        problem = "new instances are protected from scale-in, so idle ones stay"
        remedy = f"aws autoscaling update-auto-scaling-group {aws} --no-new-instances-protected-from-scale-in"
        found.append(_warning(group, problem, remedy))
    return found


def _autoscaler(pool: Pool, group: GroupSettings, cluster: str) -> list[Finding]:
    found = []
    if not pool.nodegroup and f"kubernetes.io/cluster/{cluster}" not in group.tags:
        problem = f"it has no tag kubernetes.io/cluster/{cluster}: its nodes may not be taken for the cluster's"
        found.append(_warning(group, problem, f"Tag it kubernetes.io/cluster/{cluster}=owned, propagated at launch."))
    if CA_DISCOVERY not in group.tags:
        return found
    if group.weighted:
        problem = "cluster-autoscaler manages it and takes its units for instances"
        remedy = f"Remove its tag {CA_DISCOVERY}, or the weights of its instance types."
        found.append(_error(group, problem, remedy))
    missing = [f"label/{key}" for key in pool.labels if f"{CA_TEMPLATE}label/{key}" not in group.tags]
    missing += [f"taint/{t.key}" for t in pool.taints if t.repels and f"{CA_TEMPLATE}taint/{t.key}" not in group.tags]
    if missing and not pool.nodegroup:
        problem = "cluster-autoscaler does not know its nodes while it has none: tags are missing"
        found.append(_warning(group, problem, f"Tag it with {', '.join(CA_TEMPLATE + name for name in missing)}."))
    return found


def _draining(pool: Pool, group: GroupSettings) -> list[Finding]:
    """Managed node groups drain their nodes by a hook of EKS's own."""
    hooks = group.terminate_hooks
    if pool.nodegroup or hooks is None or pool.interruption.hook in hooks:
        return []
    problem = f"it has no terminate hook {pool.interruption.hook}: instances that Auto Scaling ends are not drained"
    remedy = (
        f"aws autoscaling put-lifecycle-hook --auto-scaling-group-name {group.name} --lifecycle-hook-name "
        f"{pool.interruption.hook} --lifecycle-transition {TERMINATING} --default-result CONTINUE"
    )
    return [_warning(group, problem, remedy)]


def _of_pool(examination: Examination, aws: Aws, pool: Pool, group_name: Callable[[Pool], str]) -> GroupSettings:
    return _read(examination, aws, group_name(pool))


def _read(examination: Examination, aws: Aws, name: str) -> GroupSettings:
    described = aws.ask("autoscaling", "describe_auto_scaling_groups", AutoScalingGroupNames=[name])
    if not described["AutoScalingGroups"]:
        raise NotFound(f"group {name}")
    (group,) = described["AutoScalingGroups"]
    named = {"AutoScalingGroupName": name}
    hooks = examination.read("hooks", name, lambda: aws.ask("autoscaling", "describe_lifecycle_hooks", **named))
    policies = examination.read(
        "policies", name, lambda: aws.pages("autoscaling", "describe_policies", "ScalingPolicies", **named)
    )
    actions = examination.read(
        "scheduled actions",
        name,
        lambda: aws.pages("autoscaling", "describe_scheduled_actions", "ScheduledUpdateGroupActions", **named),
    )
    launch = group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
    return GroupSettings(
        name=name,
        max_size=group["MaxSize"],
        zones=tuple(group.get("AvailabilityZones", ())),
        suspended=frozenset(process["ProcessName"] for process in group.get("SuspendedProcesses", ())),
        capacity_rebalance=group.get("CapacityRebalance") or False,
        weighted=any("WeightedCapacity" in override for override in launch.get("Overrides", ())),
        spot=_launches_spot(aws, group),
        protects_newcomers=group.get("NewInstancesProtectedFromScaleIn", False),
        longest_life_seconds=group.get("MaxInstanceLifetime") or 0,
        tags={tag["Key"]: tag.get("Value", "") for tag in group.get("Tags", ())},
        terminate_hooks=None if hooks is None else _terminate_hooks(hooks["LifecycleHooks"]),
        scale_in_policies=None if policies is None else tuple(p["PolicyName"] for p in policies if _scales_in(p)),
        scheduled_actions=None if actions is None else tuple(a["ScheduledActionName"] for a in actions),
    )


def _terminate_hooks(hooks: list[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(hook["LifecycleHookName"] for hook in hooks if hook.get("LifecycleTransition") == TERMINATING)


def _launches_spot(aws: Aws, group: Mapping[str, Any]) -> bool:
    policy = group.get("MixedInstancesPolicy")
    if policy is not None:
        return int(policy.get("InstancesDistribution", {}).get("OnDemandPercentageAboveBaseCapacity", 100)) < 100
    template = group.get("LaunchTemplate")
    if template is None:
        return False
    versions = aws.ask(
        "ec2",
        "describe_launch_template_versions",
        LaunchTemplateId=template["LaunchTemplateId"],
        Versions=[template.get("Version", "$Default")],
    )["LaunchTemplateVersions"]
    options = (v["LaunchTemplateData"].get("InstanceMarketOptions", {}) for v in versions)
    return any(option.get("MarketType") == "spot" for option in options)


def _scales_in(policy: Mapping[str, Any]) -> bool:
    """https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_ScalingPolicy.html; predictive scaling only adds."""
    match policy.get("PolicyType", "SimpleScaling"):
        case "TargetTrackingScaling":
            return not policy.get("TargetTrackingConfiguration", {}).get("DisableScaleIn", False)
        case "StepScaling":
            steps = policy.get("StepAdjustments", ())
            return _sets_size(policy) or any(step["ScalingAdjustment"] < 0 for step in steps)
        case "SimpleScaling":
            return _sets_size(policy) or policy.get("ScalingAdjustment", 0) < 0
        case _:
            return False


def _sets_size(policy: Mapping[str, Any]) -> bool:
    return policy.get("AdjustmentType") == "ExactCapacity"


def _error(group: GroupSettings, problem: str, remedy: str) -> Finding:
    return Finding("error", "group", group.name, problem, remedy)


def _warning(group: GroupSettings, problem: str, remedy: str) -> Finding:
    return Finding("warning", "group", group.name, problem, remedy)
