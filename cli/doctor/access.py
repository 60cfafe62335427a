"""Whether the functions are let into the cluster: authentication mode, access entries, RBAC."""

from __future__ import annotations

import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import yaml

from cli.doctor.findings import REDEPLOY, Finding
from firstbell.cloud.eks import Eks
from firstbell.cloud.refusals import Refused
from firstbell.cloud.session import Clients
from firstbell.cluster.access import Verb, denied_verbs
from firstbell.cluster.client import ApiServer
from firstbell.errors import AccessDenied
from infra.names import kubernetes_group

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cli.doctor.asking import Aws
    from cli.doctor.delivery import Function
    from cli.doctor.findings import Examination

RBAC = Path(__file__).resolve().parents[2] / "infra" / "rbac.yaml"
APPLY = "kubectl apply -f infra/rbac.yaml"


def examine_access(
    examination: Examination, aws: Aws, cluster: str, functions: Sequence[Function], api: Callable[[], ApiServer]
) -> None:
    described = examination.read(
        "cluster",
        cluster,
        lambda: aws.ask("eks", "describe_cluster", name=cluster)["cluster"],
        remedy="Correct the cluster's name or region in firstbell.yaml.",
    )
    if described is None:
        return
    _examine_mode(examination, cluster, described.get("accessConfig", {}).get("authenticationMode", "CONFIG_MAP"))
    granted = verbs_by_group(RBAC)
    for function in functions:
        group = kubernetes_group(function.capability)
        _examine_entry(examination, aws, cluster, function, group)
        _examine_verbs(examination, aws, cluster, function, group, granted.get(group, []), api)


def verbs_by_group(manifest: Path) -> dict[str, list[Verb]]:
    """Kubernetes group -> what infra/rbac.yaml grants it: exactly what its function uses."""
    documents = [document for document in yaml.safe_load_all(manifest.read_text()) if document]
    roles = {d["metadata"]["name"]: d["rules"] for d in documents if d["kind"] == "ClusterRole"}
    return {
        subject["name"]: [verb for rule in roles[d["roleRef"]["name"]] for verb in _verbs(rule)]
        for d in documents
        if d["kind"] == "ClusterRoleBinding"
        for subject in d["subjects"]
    }


def _verbs(rule: Mapping[str, Any]) -> list[Verb]:
    return [
        Verb(verb, *_resource(resource, group))
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def _resource(resource: str, group: str) -> tuple[str, str, str]:
    name, _, subresource = resource.partition("/")
    return name, group, subresource


def _examine_mode(examination: Examination, cluster: str, mode: str) -> None:
    remedy = f"aws eks update-cluster-config --name {cluster} --access-config authenticationMode=API_AND_CONFIG_MAP"
    problem = "its authentication mode is CONFIG_MAP: access entries have no effect, no function is let in"
    examination.add([Finding("error", "access", cluster, problem, remedy)] if mode == "CONFIG_MAP" else [])


def _examine_entry(examination: Examination, aws: Aws, cluster: str, function: Function, group: str) -> None:
    entry = examination.read(
        "access",
        function.name,
        lambda: aws.ask("eks", "describe_access_entry", clusterName=cluster, principalArn=function.role_arn),
        remedy=f"Its role has no access entry. {REDEPLOY}",
    )
    if entry is None:
        return
    groups = entry["accessEntry"].get("kubernetesGroups", [])
    remedy = (
        f"aws eks update-access-entry --cluster-name {cluster} --principal-arn {function.role_arn} "
        f"--kubernetes-groups {group}"
    )
    problem = f"its access entry gives it {', '.join(groups) or 'no group'} and not {group}"
    examination.add([] if group in groups else [Finding("error", "access", function.name, problem, remedy)])


def _examine_verbs(
    examination: Examination,
    aws: Aws,
    cluster: str,
    function: Function,
    group: str,
    verbs: Sequence[Verb],
    api: Callable[[], ApiServer],
) -> None:
    """Asks as the function's role where that lets the caller in, which proves token, entry and RBAC in one. Else the
    caller asks about the group, for which it needs the right to create subjectaccessreviews."""

    def read() -> list[Verb]:
        try:
            clients = RoleClients(aws.session_of(function.role_arn), aws.region)
        except (AccessDenied, Refused):
            return _denied_to_group(api(), group, verbs)
        endpoint = Eks(clients).describe(cluster)
        own = ApiServer(endpoint.endpoint, endpoint.ca_data, Eks(clients).token_source(cluster), time.time)
        return denied_verbs(own, verbs)

    denied = examination.read("rbac", function.name, read)
    if denied is None:
        return
    problem = f"may not {', '.join(str(verb) for verb in denied)}"
    examination.add([Finding("error", "rbac", function.name, problem, APPLY)] if denied else [])


def _denied_to_group(api: ApiServer, group: str, verbs: Sequence[Verb]) -> list[Verb]:
    """https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access"""
    return [verb for verb in verbs if not _allowed(api, group, verb)]


def _allowed(api: ApiServer, group: str, verb: Verb) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "firstbell-doctor",
            "groups": [group, "system:authenticated"],
            "resourceAttributes": {
                "verb": verb.verb,
                "group": verb.group,
                "resource": verb.resource,
                "subresource": verb.subresource,
            },
        },
    }
    answer = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body=review)
    return bool((answer.get("status") or {}).get("allowed"))


class RoleClients(Clients):
    """Clients with the credentials of a role's session."""

    def __init__(self, session: Mapping[str, str], region: str) -> None:
        super().__init__(region)
        self._credentials = session

    @cached_property
    def _session(self) -> boto3.Session:
        return boto3.Session(
            aws_access_key_id=self._credentials["AccessKeyId"],
            aws_secret_access_key=self._credentials["SecretAccessKey"],
            aws_session_token=self._credentials["SessionToken"],
            region_name=self.region,
        )
