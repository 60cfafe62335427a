"""AWS's errors in our words."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError, NoCredentialsError

from firstbell.errors import AccessDenied, FirstbellError, RetryLater

if TYPE_CHECKING:
    from collections.abc import Iterator

HEALED_BY_WAITING = frozenset(
    {
        # throttling: https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "LimitExceededException",
        "TransactionInProgressException",
        "BandwidthLimitExceeded",
        "PriorRequestNotComplete",
        "EC2ThrottledException",
        # trouble of AWS's own
        "InternalFailure",
        "InternalError",
        "InternalServerError",
        "ServerException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
        "RequestTimeout",
        "RequestTimeoutException",
        # Auto Scaling busy with the same group: https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetDesiredCapacity.html
        "ResourceContention",
        "ScalingActivityInProgress",
    }
)

DENIED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "UnauthorizedOperation",
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "OptInRequired",
    }
)


class Refused(FirstbellError):
    """AWS understood the call and refused it for good: an operator, or we, have to change something."""

    def __init__(self, operation: str, code: str, message: str) -> None:
        super().__init__(f"{operation}: {code}: {message}")
        self.code = code
        self.message = message


def code_of(error: ClientError) -> str:
    """AWS's error code; Auto Scaling's query protocol adds a suffix `Fault` to some of them."""
    return error.response.get("Error", {}).get("Code", "").removesuffix("Fault")


def translated_error(operation: str, error: ClientError | BotoCoreError) -> FirstbellError:
    """RetryLater, AccessDenied or Refused; `operation` in IAM's spelling (`autoscaling:DetachInstances`)."""
    if not isinstance(error, ClientError):
        if isinstance(error, (HTTPClientError, ConnectionError)):
            return RetryLater(f"{operation}: {error}")
        if isinstance(error, NoCredentialsError):
            return AccessDenied(f"{operation}: {error}")
        return Refused(operation, type(error).__name__, str(error))
    code, message = code_of(error), error.response.get("Error", {}).get("Message", "")
    if code in DENIED:
        return AccessDenied(f"{operation}: {code}: {message}")
    if code in HEALED_BY_WAITING or error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:
        return RetryLater(f"{operation}: {code}: {message}")
    return Refused(operation, code, message)


@contextmanager
def translated(operation: str) -> Iterator[None]:
    """Around one AWS call: what botocore raises leaves as one of ours."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        ours = translated_error(operation, error)
        ours.operation = operation
        raise ours from error
