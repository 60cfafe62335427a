"""`firstbell density`: how many pods fit on a node of an instance type, and why no more."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from cli.catalogue import CATALOGUE, described, read_catalogue
from firstbell.capacity.allocatable import DEFAULT_ROOT_VOLUME_GIB, estimated_allocatable
from firstbell.capacity.density import CannotPlace, NodeShape, density
from firstbell.capacity.instance_types import InstanceTypeFacts
from firstbell.capacity.max_pods import eni_max_pods, max_pods
from firstbell.capacity.pools import Networking
from firstbell.capacity.quantities import InvalidQuantity, cpu_millicores, whole_units
from firstbell.capacity.resources import Resources
from firstbell.cloud.instance_types import InstanceTypes
from firstbell.cloud.session import Clients
from firstbell.errors import FirstbellError

FITS_NOWHERE = 1
WRONG_USE = 2

_ASKED = {
    "cpu": ("cpu_millicores", cpu_millicores),
    "memory": ("memory_bytes", whole_units),
    "ephemeral-storage": ("ephemeral_storage_bytes", whole_units),
    "gpu": ("gpus", whole_units),
    "volumes": ("volumes", whole_units),
}
"""What `--pod` may name -> the field of Resources and how its quantity is read."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of each type."""

    pod: Resources
    overhead: Resources
    networking: Networking
    managed: bool
    root_volume_gib: int


def density_command(
    pod: Annotated[
        str, typer.Option(help="What one pod asks for: cpu=500m,memory=2Gi,gpu=1,ephemeral-storage=1Gi,volumes=1.")
    ],
    instance_type: Annotated[str | None, typer.Option(help="The instance type, such as m5.large.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every known type, one a line.")] = False,
    daemonset: Annotated[
        list[str] | None, typer.Option(help="What a DaemonSet's pod asks for, as --pod; repeat for each.")
    ] = None,
    cni_prefix: Annotated[bool, typer.Option("--cni-prefix", help="The VPC CNI hands out prefixes.")] = False,
    cni_custom: Annotated[bool, typer.Option("--cni-custom", help="The VPC CNI uses custom networking.")] = False,
    reserved_enis: Annotated[int, typer.Option(min=0, help="Network interfaces that give pods no address.")] = 0,
    ipv6: Annotated[bool, typer.Option("--ipv6", help="The cluster is of the IPv6 family.")] = False,
    max_pods_set: Annotated[
        int | None, typer.Option("--max-pods", min=1, help="kubelet's maxPods, if you set it.")
    ] = None,
    self_managed: Annotated[
        bool, typer.Option("--self-managed", help="Not a managed node group: EKS does not cap the pods.")
    ] = False,
    root_volume_gib: Annotated[int, typer.Option(min=1, help="Size of the root volume.")] = DEFAULT_ROOT_VOLUME_GIB,
    offline: Annotated[bool, typer.Option("--offline", help="Ask the catalogue file, not EC2.")] = False,
    catalogue: Annotated[Path, typer.Option(help="The catalogue of --offline.")] = CATALOGUE,
    region: Annotated[str | None, typer.Option(help="Region to ask; else that of your AWS configuration.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """How many pods fit on a node of an instance type, computed for the EKS AL2023 AMI.

    Ends with 1 where the pod fits on no such node and with 2 for an unknown type or a wrong option.
    """
    if (instance_type is None) is not every:
        _stop("give either --instance-type or --all", WRONG_USE)
    question = Question(
        pod=_asked(pod, "--pod"),
        overhead=sum((_asked(one, "--daemonset") for one in daemonset or ()), Resources()),
        networking=Networking(cni_prefix, cni_custom, reserved_enis, ipv6, max_pods_set),
        managed=not self_managed,
        root_volume_gib=root_volume_gib,
    )
    try:
        known = read_catalogue(catalogue) if offline else _ask_ec2(instance_type, region)
    except FirstbellError as error:
        _stop(f"{error}; --offline asks the catalogue instead" if not offline else str(error), FITS_NOWHERE)
    if instance_type is not None and instance_type not in known:
        _stop(f"unknown instance type {instance_type!r}: {_not_known(offline, catalogue)}", WRONG_USE)
    answers = [answer(known[name], question) for name in ([instance_type] if instance_type else sorted(known))]
    for one in answers:
        print(json.dumps(one) if as_json else in_words(one))
    if instance_type and not answers[0]["density"]:
        raise typer.Exit(FITS_NOWHERE)


def answer(facts: InstanceTypeFacts, question: Question) -> dict[str, Any]:
    """What `--json` prints of one type. A pod that does not fit has density 0 and a `reason`."""
    head: dict[str, Any] = {
        "instance_type": facts.name,
        "eni_max_pods": eni_max_pods(facts, question.networking),
        "max_pods": max_pods(facts, question.networking, managed=question.managed),
        "allocatable": {},
    }
    try:
        allocatable = estimated_allocatable(
            facts, question.networking, managed=question.managed, root_volume_gib=question.root_volume_gib
        )
        head["allocatable"] = asdict(allocatable)
        found = density(NodeShape(facts.name, allocatable, question.overhead, estimated=True), question.pod)
    except CannotPlace as refusal:
        return head | {"density": 0, "limited_by": refusal.limited_by or None, "reason": refusal.reason}
    return head | {"density": found.pods, "limited_by": found.limited_by}


def in_words(answered: dict[str, Any]) -> str:
    name = f"{answered['instance_type']}: "
    if not answered["density"]:
        return f"{name}none, {answered['reason']}"
    offered = answered["allocatable"]
    return (
        f"{name}{answered['density']} a node, limited by {answered['limited_by']} "
        f"(at most {answered['max_pods']} pods, {offered['cpu_millicores']}m cpu, "
        f"{offered['memory_bytes'] / 2**30:.2f}Gi memory)"
    )


def _asked(text: str, option: str) -> Resources:
    amounts: dict[str, int] = {}
    for part in text.split(","):
        name, equals, quantity = part.strip().partition("=")
        if name not in _ASKED or not equals:
            _stop(
                f"{option}: {part.strip()!r} is not one of {', '.join(f'{known}=...' for known in _ASKED)}", WRONG_USE
            )
        field, read = _ASKED[name]
        if field in amounts:
            _stop(f"{option}: {name} is given twice", WRONG_USE)
        try:
            amounts[field] = read(quantity)
        except InvalidQuantity as error:
            _stop(f"{option}: {name}: {error}", WRONG_USE)
    return Resources(**amounts, pods=1)


def _ask_ec2(instance_type: str | None, region: str | None) -> dict[str, InstanceTypeFacts]:
    clients = Clients(region)
    if instance_type is None:
        return {facts.name: facts for facts in described(clients)}
    return dict(InstanceTypes(clients).describe([instance_type]).facts)


def _not_known(offline: bool, catalogue: Path) -> str:
    if offline:
        return f"it is not in {catalogue}; `firstbell catalogue refresh` brings that up to date"
    return "EC2 describes no such type in this region"


def _stop(problem: str, code: int) -> NoReturn:
    print(f"error: {problem}", file=sys.stderr)
    raise typer.Exit(code)
