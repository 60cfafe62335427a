"""Whether our own role may do what the function is about to do, asked of the API server itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firstbell.cluster.client import ApiServer


@dataclass(frozen=True, slots=True)
class Verb:
    """One permission, as RBAC writes it. An empty namespace means all of them."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource}/{self.subresource}" if self.subresource else f"{self.verb} {resource}"


def denied_verbs(api: ApiServer, verbs: Sequence[Verb]) -> list[Verb]:
    """The verbs of `verbs` that we are not allowed, in their order; asked at once, one SelfSubjectAccessReview each.
    https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
    """
    if not verbs:
        return []
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=min(8, len(verbs))) as threads:
        allowed = list(threads.map(lambda verb: _allowed(api, verb), verbs))
    return [verb for verb, granted in zip(verbs, allowed, strict=True) if not granted]


def _allowed(api: ApiServer, verb: Verb) -> bool:
    attributes = {
        "verb": verb.verb,
        "group": verb.group,
        "resource": verb.resource,
        "subresource": verb.subresource,
        "namespace": verb.namespace,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = api.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=review)
    return bool((answer.get("status") or {}).get("allowed"))
