"""Certificates as a TLS library and Kubernetes read them."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import PolicyBuilder, Store

from localcloud.controlplane.certificates import Authority, create_token_key


def test_a_server_certificate_is_trusted_for_loopback_by_whoever_trusts_the_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue_server("server")
    root = x509.load_pem_x509_certificate(authority.certificate.read_bytes())

    verifier = (
        PolicyBuilder()
        .store(Store([root]))
        .time(datetime.datetime.now(datetime.UTC).replace(tzinfo=None))
        .build_server_verifier(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    )

    assert verifier.verify(x509.load_pem_x509_certificate(pair.certificate.read_bytes()), [])


def test_a_client_certificate_names_its_user_and_groups(tmp_path: Path) -> None:
    pair = Authority(tmp_path).issue_client("system:kube-scheduler", ("ops", "dev"))

    subject = x509.load_pem_x509_certificate(pair.certificate.read_bytes()).subject

    assert [name.value for name in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["system:kube-scheduler"]
    assert [name.value for name in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["ops", "dev"]


def test_private_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    keys = [Authority(tmp_path).issue_server("server").key, create_token_key(tmp_path).key]

    assert {key.stat().st_mode & 0o777 for key in keys} == {0o600}
