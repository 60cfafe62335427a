"""Which tokens are accepted, and which Kubernetes user a caller is."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest

from localcloud.controlplane.eks_token import Caller, TokenRefused, kubernetes_user, read_token

NOW = datetime(2026, 1, 5, 7, 55, tzinfo=UTC)
EMULATOR = "127.0.0.1:4566"
QUERY = {
    "Action": "GetCallerIdentity",
    "Version": "2011-06-15",
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    "X-Amz-Credential": "ASIAEXAMPLE/20260105/us-west-2/sts/aws4_request",
    "X-Amz-Date": "20260105T075400Z",
    "X-Amz-Expires": "60",
    "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
    "X-Amz-Signature": "0" * 64,
}


def token(origin: str = "https://sts.us-west-2.amazonaws.com", path: str = "/", **changed: str) -> str:
    query = {name: value for name, value in (QUERY | changed).items() if value}
    return encoded(f"{origin}{path}?{urlencode(query)}")


def encoded(url: str) -> str:
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "origin",
    [
        "https://sts.us-west-2.amazonaws.com",
        "https://sts.amazonaws.com",
        "https://sts-fips.us-east-1.amazonaws.com",
        f"http://{EMULATOR}",
    ],
)
def test_a_call_presigned_for_sts_or_for_the_local_aws_is_read(origin: str) -> None:
    call = read_token(token(origin), now=NOW, emulator=EMULATOR)

    assert call.access_key_id == "ASIAEXAMPLE"
    assert "Action=GetCallerIdentity" in call.query


@pytest.mark.parametrize(
    ("bearer", "reason"),
    [
        ("eyJhbGciOiJSUzI1NiJ9", "does not begin with"),
        ("k8s-aws-v1.%%%", "not base64url"),
        ("k8s-aws-v1." + "A" * 5000, "too large"),
        (token("https://sts.evil.example"), "is not STS"),
        (token("https://sts.us-west-2.amazonaws.com.evil.example"), "is not STS"),
        (token("http://sts.us-west-2.amazonaws.com"), "is not STS"),
        (token("http://127.0.0.1:9999"), "is not STS"),
        (token(path="/x"), "path"),
        (token(Action="AssumeRole"), "not a GetCallerIdentity"),
        (token(RoleArn="arn:aws:iam::000000000000:role/admin"), "RoleArn is not allowed"),
        (encoded(f"https://sts.amazonaws.com/?{urlencode(QUERY)}&action=AssumeRole&action=x"), "more than once"),
        (token(**{"X-Amz-SignedHeaders": "host"}), "is not signed"),
        (token(**{"X-Amz-Expires": "901"}), "X-Amz-Expires"),
        (token(**{"X-Amz-Expires": ""}), "X-Amz-Expires"),
        (token(**{"X-Amz-Date": ""}), "X-Amz-Date"),
        (token(**{"X-Amz-Date": "20260105T073959Z"}), "expired"),
    ],
)
def test_a_token_that_the_eks_authenticator_would_refuse_is_refused(bearer: str, reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason):
        read_token(bearer, now=NOW, emulator=EMULATOR)


def test_a_token_lives_fifteen_minutes_whatever_its_url_says() -> None:
    signed_at = datetime(2026, 1, 5, 7, 54, tzinfo=UTC)

    read_token(token(), now=signed_at + timedelta(minutes=15), emulator=EMULATOR)
    with pytest.raises(TokenRefused):
        read_token(token(), now=signed_at + timedelta(minutes=15, seconds=1), emulator=EMULATOR)


SESSION = Caller("arn:aws:sts::111122223333:assumed-role/prescale/fn@7", "111122223333", "AROAEXAMPLE:fn@7")


def test_a_session_is_known_by_its_role() -> None:
    assert SESSION.principal_arn == "arn:aws:iam::111122223333:role/prescale"
    assert Caller("arn:aws:iam::111122223333:user/ana", "111122223333", "AIDA").principal_arn.endswith(":user/ana")


def test_an_access_entry_gives_the_user_name_and_the_groups() -> None:
    entry = {"username": "firstbell:{{SessionName}}", "kubernetesGroups": ["firstbell:prescale"]}

    user = kubernetes_user(SESSION, "ASIAEXAMPLE", entry)

    assert user["username"] == "firstbell:fn-7"
    assert user["groups"] == ["firstbell:prescale"]
    assert user["uid"] == "aws-iam-authenticator:111122223333:AROAEXAMPLE"
    assert user["extra"]["canonicalArn"] == ["arn:aws:iam::111122223333:role/prescale"]


def test_without_a_user_name_in_the_entry_the_callers_arn_is_the_user() -> None:
    assert kubernetes_user(SESSION, "ASIAEXAMPLE", {})["username"] == SESSION.arn
