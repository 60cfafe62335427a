from __future__ import annotations

import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from firstbell.cloud.refusals import Refused, translated
from firstbell.errors import AccessDenied, FirstbellError, RetryLater


def _answered(code: str, http: int = 400) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": http}}, "Do")  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (_answered("ThrottlingException"), RetryLater),
        (_answered("RequestLimitExceeded", 503), RetryLater),
        (_answered("ScalingActivityInProgressFault"), RetryLater),
        (_answered("NobodyKnows", 500), RetryLater),
        (_answered("UnauthorizedOperation", 403), AccessDenied),
        (_answered("ValidationError"), Refused),
        (ReadTimeoutError(endpoint_url="https://aws"), RetryLater),
        (EndpointConnectionError(endpoint_url="https://aws"), RetryLater),
        (NoCredentialsError(), AccessDenied),
        (ParamValidationError(report="of our own making"), Refused),
    ],
    ids=str,
)
def test_what_botocore_raises_leaves_as_one_of_ours(error: Exception, expected: type[FirstbellError]) -> None:
    with pytest.raises(FirstbellError) as caught, translated("service:Operation"):
        raise error
    assert type(caught.value) is expected
    assert str(caught.value).startswith("service:Operation: ")


def test_what_is_not_botocores_passes() -> None:
    with pytest.raises(KeyError), translated("service:Operation"):
        raise KeyError("ours")


def test_an_error_names_the_call_that_failed() -> None:
    with pytest.raises(RetryLater) as raised, translated("dynamodb:Query"):
        raise _answered("ThrottlingException")
    assert raised.value.operation == "dynamodb:Query"
