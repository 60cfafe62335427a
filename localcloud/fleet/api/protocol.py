"""AWS's query protocol for Auto Scaling, by botocore's own service model: parse requests, serialise answers.

https://docs.aws.amazon.com/autoscaling/ec2/APIReference/making-api-requests.html
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from localcloud.fleet.errors import Refused, invalid

NAMESPACE = "http://autoscaling.amazonaws.com/doc/2011-01-01/"


def parse(action: str, form: Mapping[str, str]) -> dict[str, Any]:
    """The request's members as botocore names and types them. Refused where the API has no such action."""
    from moto.core.parse import PROTOCOL_PARSERS

    request: Any = {
        "values": dict(form),
        "method": "POST",
        "headers": {},
        "url_path": "/",
        "url_params": {},
        "body": b"",
    }
    parsed = PROTOCOL_PARSERS["query"](_operation(action)).parse(request)
    missing = [name for name in _operation(action).input_shape.required_members if name not in parsed]
    if missing:
        raise invalid(
            f"{len(missing)} validation error{'s' if len(missing) > 1 else ''} detected: "
            + "; ".join(
                f"Value null at '{name[0].lower()}{name[1:]}' failed to satisfy constraint: Member must not be null"
                for name in missing
            )
        )
    return dict(parsed)


def serialise(action: str, result: Mapping[str, Any]) -> str:
    """The answer's XML. Members that the API's model does not have are left out."""
    from moto.core.serialize import get_serializer_class

    serializer = get_serializer_class("autoscaling", "query")(operation_model=_operation(action))
    return str(serializer.serialize(dict(result))["body"])


def _operation(action: str) -> Any:
    from botocore.model import OperationNotFoundError
    from moto.core.utils import get_service_model

    try:
        return get_service_model("autoscaling").operation_model(action)
    except OperationNotFoundError:
        raise Refused("InvalidAction", f"Could not find operation {action} for version 2011-01-01") from None


def autoscaling_error(refused: Refused) -> str:
    return (
        f'<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>Sender</Type><Code>{escape(refused.code)}</Code>'
        f"<Message>{escape(refused.message)}</Message></Error><RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>"
    )


def ec2_error(refused: Refused) -> str:
    """https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html#api-error-response"""
    return (
        f"<Response><Errors><Error><Code>{escape(refused.code)}</Code><Message>{escape(refused.message)}</Message>"
        f"</Error></Errors><RequestID>{uuid.uuid4()}</RequestID></Response>"
    )


def page(
    items: Sequence[Any], request: Mapping[str, Any], *, default: int, most: int
) -> tuple[Sequence[Any], dict[str, str]]:
    """One page of a Describe call's items, and its NextToken where more follow. Refused beyond AWS's MaxRecords."""
    size = int(request.get("MaxRecords") or default)
    if not 1 <= size <= most:
        raise invalid(
            f"1 validation error detected: Value '{size}' at 'maxRecords' failed to satisfy constraint: "
            f"Member must have value less than or equal to {most}"
        )
    token = request.get("NextToken")
    if token and not str(token).isdecimal():
        raise Refused("InvalidNextToken", "The token provided is not valid.")
    start = int(token or 0)
    more = {"NextToken": str(start + size)} if start + size < len(items) else {}
    return items[start : start + size], more
