"""The API server's token webhook: who is it that sends this EKS token?

As on EKS the answer comes from AWS: the presigned call in the token is replayed against STS (the local one), and the
caller's principal needs an access entry of the cluster. Nothing is remembered here; the API server keeps an answer
for five seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from localcloud.controlplane.eks_token import (
    CLUSTER_HEADER,
    Caller,
    PresignedCall,
    TokenRefused,
    kubernetes_user,
    read_token,
)

if TYPE_CHECKING:
    from mypy_boto3_eks import EKSClient

TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True)
class Authenticator:
    """Answers TokenReviews for one cluster from one emulator's STS and EKS."""

    cluster: str
    aws_endpoint: str
    eks: EKSClient

    def review(self, token: str) -> dict[str, Any]:
        """Return TokenReview's `status`."""
        try:
            call = read_token(token, now=datetime.now(UTC), emulator=urlsplit(self.aws_endpoint).netloc)
            caller = self._identify(call)
            entry = self._access_entry(caller.principal_arn)
        except TokenRefused as refusal:
            print(f"refused: {refusal}", file=sys.stderr, flush=True)
            return {"authenticated": False, "error": str(refusal)}
        return {"authenticated": True, "user": kubernetes_user(caller, call.access_key_id, entry)}

    def _identify(self, call: PresignedCall) -> Caller:
        request = urllib.request.Request(f"{self.aws_endpoint}/?{call.query}")  # noqa: S310 - http on loopback
        request.add_header(CLUSTER_HEADER, self.cluster)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                answer = ET.fromstring(response.read())  # noqa: S314 - the local STS's own answer
        except (OSError, ET.ParseError) as error:
            raise TokenRefused(f"STS did not identify the caller: {error}") from error
        found = {name: answer.findtext(f".//{{*}}{name}", "") for name in ("Arn", "Account", "UserId")}
        if not found["Arn"]:
            raise TokenRefused("STS named no caller")
        return Caller(found["Arn"], found["Account"], found["UserId"])

    def _access_entry(self, principal_arn: str) -> dict[str, Any]:
        try:
            answer = self.eks.describe_access_entry(clusterName=self.cluster, principalArn=principal_arn)
        except self.eks.exceptions.ResourceNotFoundException as error:
            raise TokenRefused(f"{principal_arn} has no access entry") from error
        return dict(answer["accessEntry"])


def token_review_handler(review: Callable[[str], dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    """Return an HTTP handler that answers POSTed TokenReviews.

    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#webhook-token-authentication
    """

    class TokenReviewHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer({"ready": True})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = review(asked["spec"]["token"])
            self._answer({"apiVersion": asked["apiVersion"], "kind": "TokenReview", "status": status})

        def _answer(self, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return TokenReviewHandler


def main() -> None:
    import boto3

    parser = argparse.ArgumentParser(prog="python -m localcloud.controlplane.webhook")
    parser.add_argument("--certificate", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    arguments = parser.parse_args()
    wiring = json.loads(Path(os.environ["LOCALCLOUD_FILE"]).read_text())
    eks = boto3.client(
        "eks",
        region_name=wiring["region"],
        endpoint_url=wiring["aws_endpoint"],
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - the emulator's root
    )
    authenticator = Authenticator(wiring["cluster"], wiring["aws_endpoint"], eks)
    address = urlsplit(wiring["webhook_endpoint"])
    server = ThreadingHTTPServer(
        (address.hostname or "", address.port or 0), token_review_handler(authenticator.review)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(arguments.certificate, arguments.key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main()
