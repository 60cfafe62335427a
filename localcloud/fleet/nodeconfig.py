"""What a launch template's user data tells the kubelet, by nodeadm (AL2023) or bootstrap.sh (AL2).

https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/
https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html#launch-template-user-data
"""

from __future__ import annotations

import base64
import binascii
import email
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

LABEL_TAG = "k8s.io/cluster-autoscaler/node-template/label/"
TAINT_TAG = "k8s.io/cluster-autoscaler/node-template/taint/"
_KUBELET_ARGUMENTS = re.compile(r"--kubelet-extra-args[ =]+(?:'([^']*)'|\"([^\"]*)\"|(\S+))")


@dataclass(frozen=True)
class Taint:
    key: str
    value: str
    effect: str


@dataclass(frozen=True)
class NodeConfig:
    """How a node registers itself. `stated` is False where the user data says nothing of the kubelet."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    max_pods: int | None = None
    stated: bool = False


def read_user_data(encoded: str) -> NodeConfig:
    """Read base64 user data: a NodeConfig, alone or in a MIME archive, or a script that calls bootstrap.sh."""
    try:
        text = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        text = encoded
    flags: list[str] = []
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    max_pods: int | None = None
    for kubelet in _kubelet_specs(text):
        flags += [str(flag) for flag in kubelet.get("flags") or []]
        configured = kubelet.get("config") or {}
        max_pods = configured.get("maxPods", max_pods)
        taints += [Taint(t["key"], t.get("value", ""), t["effect"]) for t in configured.get("registerWithTaints") or []]
    for match in _KUBELET_ARGUMENTS.finditer(text):
        flags += shlex.split(next(group for group in match.groups() if group is not None))
    for name, value in _flags(flags):
        if name == "node-labels":
            labels |= {pair.partition("=")[0]: pair.partition("=")[2] for pair in value.split(",") if pair}
        elif name == "register-with-taints":
            taints += [parse_taint(*_key_and_rest(one)) for one in value.split(",") if one]
        elif name == "max-pods":
            max_pods = int(value)
    return NodeConfig(labels, tuple(taints), max_pods, stated=bool(labels or taints))


def read_tags(tags: Mapping[str, str]) -> NodeConfig:
    """Labels and taints as cluster-autoscaler reads them from a group's node-template tags (taint = `value:Effect`).

    https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md
    """
    labels = {key.removeprefix(LABEL_TAG): value for key, value in tags.items() if key.startswith(LABEL_TAG)}
    taints = [parse_taint(key.removeprefix(TAINT_TAG), v) for key, v in tags.items() if key.startswith(TAINT_TAG)]
    return NodeConfig(labels, tuple(taints), stated=bool(labels or taints))


def parse_taint(key: str, value_and_effect: str) -> Taint:
    value, _, effect = value_and_effect.rpartition(":")
    return Taint(key, value, effect)


def _key_and_rest(taint: str) -> tuple[str, str]:
    key, equals, rest = taint.partition("=")
    if equals:
        return key, rest
    bare, _, effect = taint.rpartition(":")
    return bare, f":{effect}"


def _flags(flags: Iterable[str]) -> Iterator[tuple[str, str]]:
    words = list(flags)
    for index, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        following = words[index + 1] if index + 1 < len(words) else ""
        yield (name, value if equals else following)


def _kubelet_specs(text: str) -> Iterable[dict[str, Any]]:
    for part in _parts(text):
        if "node.eks.aws/" not in part:
            continue
        for document in yaml.safe_load_all(part):
            if isinstance(document, dict) and document.get("kind") == "NodeConfig":
                yield (document.get("spec") or {}).get("kubelet") or {}


def _parts(text: str) -> Iterable[str]:
    if not text.lstrip().lower().startswith(("mime-version", "content-type")):
        yield text
        return
    for part in email.message_from_string(text.lstrip()).walk():
        if not part.is_multipart():
            payload = part.get_payload(decode=True)
            yield payload.decode() if isinstance(payload, bytes) else str(payload)
