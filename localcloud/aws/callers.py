"""Who calls: the principal of a request, for resource policies that name accounts and roles.

Missing upstream: without AUTH every caller counts as its account's root; and `aws:PrincipalArn` of a role's session is
there the session's ARN, where AWS puts the role's.

A caller's account is the one of its STS session, or its access key itself where that is twelve digits, so a test
speaks as another account by using the account's number as its key.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-principalarn
"""

from __future__ import annotations

import contextvars
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from localcloud.aws.upstream import replace

SESSION_ARN = re.compile(r"arn:(?P<partition>[^:]+):sts::(?P<account>\d{12}):assumed-role/(?P<role>[^/]+)/.+")


@dataclass(frozen=True)
class Caller:
    """A principal: `arn` as GetCallerIdentity answers it."""

    arn: str
    account: str

    @property
    def principal_arn(self) -> str:
        """The value of `aws:PrincipalArn`: of a session, its role."""
        session = SESSION_ARN.fullmatch(self.arn)
        if session is None:
            return self.arn
        return f"arn:{session['partition']}:iam::{session['account']}:role/{session['role']}"


_caller: contextvars.ContextVar[Caller | None] = contextvars.ContextVar("localcloud_caller", default=None)


def install() -> None:
    """Make conditions on aws:PrincipalArn see the role of a session."""
    from ministack.core import iam_evaluator

    def resolve(key: str, ctx: Any) -> Any:
        if key.lower() == "aws:principalarn":
            return Caller(ctx.principal_arn, ctx.principal_account).principal_arn
        return upstream_resolve(key, ctx)

    upstream_resolve = replace(iam_evaluator, "_resolve_condition_key", "key ctx", resolve)


def remember_callers_of(service: ModuleType) -> None:
    """Let `current_caller` answer while `service` handles a request."""

    async def handle_request(method: str, path: str, headers: dict[str, str], body: bytes, query_params: Any) -> Any:
        token = _caller.set(caller_of(headers, query_params))
        try:
            return await upstream_handle(method, path, headers, body, query_params)
        finally:
            _caller.reset(token)

    upstream_handle = replace(service, "handle_request", "method path headers body query_params", handle_request)


def caller_of(headers: dict[str, str], query_params: Any) -> Caller:
    """The principal that signed a request; its account's root where the key is no session's and no user's."""
    from ministack.core.iam_evaluator import resolve_caller_identity
    from ministack.core.responses import get_account_id
    from ministack.core.router import extract_access_key_id

    identity = resolve_caller_identity(extract_access_key_id(headers, query_params))
    account: str = get_account_id()
    return Caller(identity["userArn"] if identity else f"arn:aws:iam::{account}:root", account)


def current_caller() -> Caller:
    """The principal of the request at hand; the account's root for what the emulator does by itself."""
    from ministack.core.responses import get_account_id

    account: str = get_account_id()
    return _caller.get() or Caller(f"arn:aws:iam::{account}:root", account)
