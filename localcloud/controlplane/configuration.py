"""Files that tell the control plane's programs whom to trust and where to look."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud.controlplane.certificates import KeyPair


@dataclass(frozen=True)
class AdminToken:
    """The bearer token of the cluster's administrator (system:masters) and the file that the API server reads it
    from."""

    token: str
    file: Path


def create_admin_token(folder: Path) -> AdminToken:
    """https://kubernetes.io/docs/reference/access-authn-authz/authentication/#static-token-file"""
    token = secrets.token_urlsafe(24)
    file = folder / "tokens.csv"
    file.touch(mode=0o600)
    file.write_text(f'{token},admin,admin,"system:masters"\n')
    return AdminToken(token, file)


def write_token_kubeconfig(path: Path, *, endpoint: str, authority: Path, token: str) -> None:
    _write_kubeconfig(path, endpoint=endpoint, authority=authority, user={"token": token})


def write_certificate_kubeconfig(path: Path, *, endpoint: str, authority: Path, pair: KeyPair) -> None:
    user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    _write_kubeconfig(path, endpoint=endpoint, authority=authority, user=user)


def write_webhook_kubeconfig(path: Path, *, endpoint: str, authority: Path) -> None:
    """Say where the API server asks about tokens it does not know itself (it reads a kubeconfig for that)."""
    _write_kubeconfig(path, endpoint=endpoint, authority=authority, user={})


def _write_kubeconfig(path: Path, *, endpoint: str, authority: Path, user: dict[str, str]) -> None:
    cluster = {"server": endpoint, "certificate-authority": str(authority)}
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "local",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": "local", "user": user}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(document, indent=1))  # JSON is YAML
