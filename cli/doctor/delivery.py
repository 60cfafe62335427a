"""Whether what is deployed runs: stack, rules, functions, queues, and the minute's tick."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cli.doctor.findings import REDEPLOY, Finding
from firstbell.cloud.refusals import Refused
from firstbell.errors import NotFound
from infra.names import bus_name, function_name, stack_name

if TYPE_CHECKING:
    from cli.doctor.asking import Aws
    from cli.doctor.findings import Examination

DEAD_LETTERS = ("-dead-letters", "-failures")
"""Endings of the names of queues where messages lie that nobody could work on."""


@dataclass(frozen=True, slots=True)
class Function:
    """A capability's function as it is deployed."""

    name: str
    capability: str
    role_arn: str


@dataclass(slots=True)
class Deployed:
    """Names of what the stack made, by CloudFormation type."""

    by_type: dict[str, list[str]] = field(default_factory=dict)

    def of(self, resource_type: str) -> list[str]:
        return self.by_type.get(resource_type, [])


def examine_delivery(examination: Examination, aws: Aws, cluster: str, now: float) -> list[Function]:
    """Returns the functions, whose roles have to be let into the cluster."""
    deployed = _deployed(examination, aws, cluster)
    if deployed is None:
        return []
    _examine_rules(examination, aws, bus_name(cluster), deployed.of("AWS::Events::Rule"))
    for schedule in deployed.of("AWS::Scheduler::Schedule"):
        _examine_schedule(examination, aws, schedule)
    for mapping in deployed.of("AWS::Lambda::EventSourceMapping"):
        _examine_mapping(examination, aws, mapping)
    for url in deployed.of("AWS::SQS::Queue"):
        _examine_queue(examination, aws, url)
    _examine_tick(examination, aws, cluster, now)
    found = [_examine_function(examination, aws, name) for name in deployed.of("AWS::Lambda::Function")]
    return [function for function in found if function is not None]


def _deployed(examination: Examination, aws: Aws, cluster: str) -> Deployed | None:
    name = stack_name(cluster)

    def read() -> tuple[str, list[tuple[str, str]]]:
        try:
            (stack,) = aws.ask("cloudformation", "describe_stacks", StackName=name)["Stacks"]
        except Refused as refusal:  # CloudFormation has no code of its own for it
            if "does not exist" in refusal.message:
                raise NotFound(str(refusal)) from refusal
            raise
        return stack["StackStatus"], aws.resources(name)

    remedy = "Is this the account and region of your credentials? Else `make deploy`."
    stack = examination.read("stack", name, read, remedy=remedy)
    if stack is None:
        return None
    status, resources = stack
    failed = "FAILED" in status or "ROLLBACK" in status
    remedy = "Read the stack's events in CloudFormation, mend what they say, `make deploy`."
    examination.add(
        [Finding("warning", "stack", name, f"the last deployment did not succeed: {status}", remedy)] if failed else []
    )
    deployed = Deployed()
    for resource_type, physical_id in resources:
        deployed.by_type.setdefault(resource_type, []).append(physical_id)
    return deployed


def _examine_rules(examination: Examination, aws: Aws, bus: str, physical_ids: list[str]) -> None:
    """CloudFormation names a rule of our bus `<bus>|<rule>`; the bus itself says which are its own."""
    rules = examination.read("bus", bus, lambda: aws.pages("events", "list_rules", "Rules", EventBusName=bus))
    ours = {rule["Name"] for rule in rules or ()}
    for physical_id in physical_ids:
        told, _, name = physical_id.rpartition("|")
        _examine_rule(examination, aws, bus if told or name in ours else "", name)


def _examine_rule(examination: Examination, aws: Aws, bus: str, name: str) -> None:
    where = {"EventBusName": bus} if bus else {}

    def read() -> tuple[str, list[Any]]:
        state = aws.ask("events", "describe_rule", Name=name, **where)["State"]
        return state, aws.ask("events", "list_targets_by_rule", Rule=name, **where)["Targets"]

    rule = examination.read("rule", name, read)
    if rule is None:
        return
    state, targets = rule
    found = []
    if state == "DISABLED":
        remedy = f"aws events enable-rule --name {name}{f' --event-bus-name {bus}' if bus else ''}"
        found.append(Finding("error", "rule", name, "is disabled: its events reach nobody", remedy))
    if not targets:
        found.append(Finding("error", "rule", name, "has no target: its events reach nobody", REDEPLOY))
    examination.add(found)


def _examine_schedule(examination: Examination, aws: Aws, physical_id: str) -> None:
    group, _, name = physical_id.rpartition("|")
    where = {"GroupName": group} if group else {}
    schedule = examination.read("schedule", name, lambda: aws.ask("scheduler", "get_schedule", Name=name, **where))
    if schedule is None:
        return
    remedy = f"Enable the schedule {name} in EventBridge Scheduler, or `make deploy`."
    disabled = schedule["State"] == "DISABLED"
    examination.add([Finding("error", "schedule", name, "is disabled: nothing runs by it", remedy)] if disabled else [])


def _examine_mapping(examination: Examination, aws: Aws, uuid: str) -> None:
    mapping = examination.read("queue", uuid, lambda: aws.ask("lambda", "get_event_source_mapping", UUID=uuid))
    if mapping is None:
        return
    state = mapping["State"]
    queue = mapping.get("EventSourceArn", uuid).rpartition(":")[2]
    remedy = f"aws lambda update-event-source-mapping --uuid {uuid} --enabled"
    stopped = state in ("Disabled", "Disabling")
    examination.add(
        [Finding("error", "queue", queue, f"nobody empties it: its mapping is {state}", remedy)] if stopped else []
    )


def _examine_queue(examination: Examination, aws: Aws, url: str) -> None:
    name = url.rpartition("/")[2]
    if not name.endswith(DEAD_LETTERS):
        return
    attribute = "ApproximateNumberOfMessages"

    def read() -> int:
        answer = aws.ask("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=[attribute])
        return int(answer["Attributes"][attribute])

    messages = examination.read("queue", name, read)
    if messages is None:
        return
    remedy = (
        f"aws sqs receive-message --queue-url {url} shows one and its error: mend what it says, have what it asked "
        "for asked again, then empty the queue with aws sqs purge-queue."
    )
    problem = f"holds {messages} that nobody could work on"
    examination.add([Finding("error", "queue", name, problem, remedy)] if messages else [])


def _examine_tick(examination: Examination, aws: Aws, cluster: str, now: float) -> None:
    name = function_name(cluster, "tick")
    runs = examination.read("tick", name, lambda: aws.good_runs(name, now))
    if runs is None:
        return
    remedy = f"Right after a deployment, ask again in five minutes. Else read the last error in /aws/lambda/{name}."
    problem = "has not come to its end for five minutes: reservations do not start, nothing is released"
    examination.add([] if runs > 0 else [Finding("error", "tick", name, problem, remedy)])


def _examine_function(examination: Examination, aws: Aws, name: str) -> Function | None:
    configuration = examination.read(
        "function", name, lambda: aws.ask("lambda", "get_function_configuration", FunctionName=name)
    )
    if configuration is None:
        return None
    capability = configuration.get("Environment", {}).get("Variables", {}).get("POWERTOOLS_SERVICE_NAME")
    if capability is None:
        return None  # one of CloudFormation's own helpers
    found = []
    if configuration.get("State", "Active") == "Failed" or configuration.get("LastUpdateStatus") == "Failed":
        why = configuration.get("StateReason") or configuration.get("LastUpdateStatusReason") or "no reason given"
        found.append(Finding("error", "function", name, f"cannot run: {why}", REDEPLOY))
    examination.add(found)
    role_arn = configuration["Role"]
    role_name = role_arn.rpartition("/")[2]
    role = examination.read("role", role_name, lambda: aws.ask("iam", "get_role", RoleName=role_name))
    return Function(name, capability, role_arn) if role is not None else None
