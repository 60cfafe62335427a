"""EKS bearer tokens: what a valid one looks like, and which Kubernetes user its AWS principal is.

The rules are those of aws-iam-authenticator's verifier, which EKS runs:
https://github.com/kubernetes-sigs/aws-iam-authenticator/blob/master/pkg/token/token.go
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
VALID_FOR = timedelta(minutes=15)
LONGEST_TOKEN = 4096
LONGEST_EXPIRES_SECONDS = 900
PARAMETERS = frozenset(
    {"action", "version", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires"}
    | {"x-amz-security-token", "x-amz-signature", "x-amz-signedheaders", "x-amz-user-agent"}
)
STS_HOST = re.compile(r"sts(-fips)?(\.[a-z0-9-]+)?\.amazonaws\.com")
ASSUMED_ROLE = re.compile(
    r"arn:(?P<partition>[^:]+):sts::(?P<account>\d{12}):assumed-role/(?P<role>[^/]+)/(?P<session>.+)"
)


class TokenRefused(Exception):
    """The token authenticates nobody; the message says why and holds nothing of the token."""


@dataclass(frozen=True)
class PresignedCall:
    """The signed query of an STS GetCallerIdentity and the access key that signed it."""

    query: str
    access_key_id: str


@dataclass(frozen=True)
class Caller:
    """What GetCallerIdentity answers."""

    arn: str
    account: str
    user_id: str

    @property
    def principal_arn(self) -> str:
        """The IAM principal that an access entry can name: a session's role, not the session."""
        session = ASSUMED_ROLE.fullmatch(self.arn)
        if session is None:
            return self.arn
        return f"arn:{session['partition']}:iam::{session['account']}:role/{session['role']}"

    @property
    def session_name(self) -> str:
        session = ASSUMED_ROLE.fullmatch(self.arn)
        return session["session"] if session else ""


def read_token(token: str, *, now: datetime, emulator: str) -> PresignedCall:
    """Return the call that the token carries. `emulator` is host:port of the local AWS, accepted beside the real STS
    hosts.

    Raises TokenRefused.
    """
    if len(token) > LONGEST_TOKEN:
        raise TokenRefused("token is too large")
    if not token.startswith(PREFIX):
        raise TokenRefused(f"token does not begin with {PREFIX}")
    encoded = token.removeprefix(PREFIX)
    try:
        text = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise TokenRefused("token is not base64url of a URL") from error
    url = urlsplit(text)
    is_sts = url.scheme == "https" and STS_HOST.fullmatch(url.netloc) is not None
    if not is_sts and not (url.scheme == "http" and url.netloc == emulator):
        raise TokenRefused(f"{url.scheme}://{url.netloc} is not STS")
    if url.path != "/":
        raise TokenRefused("unexpected path")
    _check_parameters(_single_values(url.query), now)
    return PresignedCall(url.query, _single_values(url.query).get("x-amz-credential", "").split("/")[0])


def _single_values(query: str) -> dict[str, str]:
    values = {}
    for name, found in parse_qs(query, keep_blank_values=True).items():
        if name.lower() not in PARAMETERS:
            raise TokenRefused(f"parameter {name} is not allowed")
        if len(found) != 1:
            raise TokenRefused(f"parameter {name} occurs more than once")
        values[name.lower()] = found[0]
    return values


def _check_parameters(values: dict[str, str], now: datetime) -> None:
    if values.get("action") != "GetCallerIdentity":
        raise TokenRefused("not a GetCallerIdentity call")
    if CLUSTER_HEADER not in values.get("x-amz-signedheaders", "").lower().split(";"):
        raise TokenRefused(f"{CLUSTER_HEADER} is not signed")
    expires = values.get("x-amz-expires", "")
    if not expires.isdecimal() or int(expires) > LONGEST_EXPIRES_SECONDS:
        raise TokenRefused("X-Amz-Expires is not between 0 and 900")
    try:
        signed_at = datetime.strptime(values.get("x-amz-date", ""), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise TokenRefused("X-Amz-Date is missing or malformed") from error
    if now > signed_at + VALID_FOR:
        raise TokenRefused("expired: signed more than 15 minutes ago")


def kubernetes_user(caller: Caller, access_key_id: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return TokenReview's `user` for a caller whose principal has this access entry (DescribeAccessEntry's shape).

    https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html (user name and its placeholders)
    """
    name = entry.get("username") or caller.arn
    name = name.replace("{{SessionName}}", caller.session_name.replace("@", "-"))
    name = name.replace("{{SessionNameRaw}}", caller.session_name).replace("{{AccountID}}", caller.account)
    principal_id = caller.user_id.split(":")[0]
    return {
        "username": name,
        "uid": f"aws-iam-authenticator:{caller.account}:{principal_id}",
        "groups": list(entry.get("kubernetesGroups", [])),
        "extra": {
            "accessKeyId": [access_key_id],
            "arn": [caller.arn],
            "canonicalArn": [caller.principal_arn],
            "principalId": [principal_id],
            "sessionName": [caller.session_name],
        },
    }
