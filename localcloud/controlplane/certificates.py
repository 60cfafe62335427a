"""The cluster's certificate authority, what it signs, and the key of the service-account tokens."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = datetime.timedelta(days=30)
# The first address of the service range is the API server's own inside the cluster.
SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
SERVER_ADDRESSES = ("127.0.0.1", "10.100.0.1")


@dataclass(frozen=True)
class KeyPair:
    """Paths of a PEM certificate and its PEM private key."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that lives as long as the cloud; `certificate` is the PEM file to trust."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "local cloud")])
        self.certificate = folder / "ca.crt"
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue_server(self, name: str) -> KeyPair:
        """Issue a certificate for a server on loopback."""
        names: list[x509.GeneralName] = [x509.DNSName(entry) for entry in SERVER_NAMES]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in SERVER_ADDRESSES]
        return self._issue(name, [], ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(names))

    def issue_client(self, user: str, groups: tuple[str, ...] = ()) -> KeyPair:
        """Issue a client certificate: Kubernetes reads the user from its common name and the groups from its
        organizations.

        https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates
        """
        return self._issue(user, list(groups), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self,
        common_name: str,
        organizations: list[str],
        usage: x509.ObjectIdentifier,
        alternative_names: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
            + [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
        )
        builder = self._builder(subject, key.public_key()).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if alternative_names is not None:
            builder = builder.add_extension(alternative_names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        stem = common_name.replace(":", "-")
        pair = KeyPair(self._folder / f"{stem}.crt", self._folder / f"{stem}.key")
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + VALID_FOR)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )


def create_token_key(folder: Path) -> KeyPair:
    """Create the key pair of service-account tokens; `certificate` of the result is the bare public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = KeyPair(folder / "service-accounts.pub", folder / "service-accounts.key")
    encoding = serialization.Encoding.PEM
    pair.certificate.write_bytes(
        key.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    _write_key(pair.key, key)
    return pair


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
