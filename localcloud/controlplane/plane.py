"""Start the control plane: what each program is told, in which order they start, and when they are ready."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from localcloud.addresses import Loopback
from localcloud.controlplane import configuration
from localcloud.controlplane.certificates import Authority, create_token_key
from localcloud.controlplane.probe import answers
from localcloud.controlplane.stages import kwok_configuration
from localcloud.supervision import Child, Supervisor

DEAD_KUBELET_LABEL = "localcloud/kubelet"
"""A node labelled `localcloud/kubelet=dead` gets no heartbeats and runs no pods any more: its kubelet has died."""

READY_WITHIN_SECONDS = 90.0


@dataclass(frozen=True, kw_only=True)
class ControlPlaneSettings:
    """Times of the simulated kubelets.

    `image_pull_seconds` and `start_seconds` are what each pod takes to pull and then to start; `node_grace_seconds` is
    the controller manager's --node-monitor-grace-period.
    """

    image_pull_seconds: float = 1.0
    start_seconds: float = 0.5
    node_grace_seconds: int = 50


class ControlPlane:
    """One control plane's files, from which everyone else knows how to reach it, and the commands of its programs."""

    def __init__(self, folder: Path, programs: Mapping[str, Path], settings: ControlPlaneSettings) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._programs = programs
        self._settings = settings
        self._store, self._peer = Loopback.free(), Loopback.free()
        self._server, self._webhook = Loopback.free(), Loopback.free()
        self._scheduler, self._kubelets = Loopback.free(), Loopback.free()
        self._authority = Authority(folder / "pki")
        self._admin = configuration.create_admin_token(folder)
        self.kubeconfig = folder / "kubeconfig"
        self.audit_log = folder / "audit.log"
        self._write_files()

    @property
    def endpoint(self) -> str:
        return self._server.https

    @property
    def webhook_endpoint(self) -> str:
        return self._webhook.https

    @property
    def ca_file(self) -> Path:
        return self._authority.certificate

    @property
    def admin_token(self) -> str:
        return self._admin.token

    def start(self, supervisor: Supervisor, environment: Mapping[str, str], report: Callable[[str], None]) -> None:
        """Start every program and return when pods can be created. Raises ChildFailed."""
        started = time.monotonic()

        def launch(name: str, command: list[str | Path]) -> Child:
            return supervisor.start(name, command, environment=environment, folder=self._folder)

        def await_url(child: Child, url: str, token: str | None = None) -> None:
            supervisor.await_ready(
                child, lambda: answers(url, self.ca_file, token), timeout_seconds=READY_WITHIN_SECONDS
            )
            report(f"{child.name} is ready ({time.monotonic() - started:.1f} s)")

        etcd = launch("etcd", self._etcd())
        await_url(etcd, f"{self._store.http}/health")
        webhook = launch("webhook", self._token_webhook())
        api_server = launch("kube-apiserver", self._api_server())
        await_url(api_server, f"{self.endpoint}/readyz", self.admin_token)
        scheduler = launch("kube-scheduler", self._kube_scheduler())
        controllers = launch("kube-controller-manager", self._controller_manager())
        kubelets = launch("kwok", self._kwok())
        # Pods are refused until the controller manager has given their namespace its default service account.
        default_account = f"{self.endpoint}/api/v1/namespaces/default/serviceaccounts/default"
        await_url(controllers, default_account, self.admin_token)
        await_url(webhook, self.webhook_endpoint)
        await_url(scheduler, f"{self._scheduler.https}/healthz")
        await_url(kubelets, f"{self._kubelets.http}/healthz")

    def _write_files(self) -> None:
        folder, authority, endpoint = self._folder, self.ca_file, self.endpoint
        pki = folder / "pki"
        self._token_key = create_token_key(pki)
        self._server_pair = self._authority.issue_server("server")
        configuration.write_token_kubeconfig(
            self.kubeconfig, endpoint=endpoint, authority=authority, token=self.admin_token
        )
        clients = {
            "kube-scheduler": self._authority.issue_client("system:kube-scheduler"),
            "kube-controller-manager": self._authority.issue_client("system:kube-controller-manager"),
            "kwok": self._authority.issue_client("kwok", ("system:masters",)),
        }
        for name, pair in clients.items():
            configuration.write_certificate_kubeconfig(
                self._kubeconfig_of(name), endpoint=endpoint, authority=authority, pair=pair
            )
        configuration.write_webhook_kubeconfig(
            folder / "webhook.kubeconfig", endpoint=f"{self.webhook_endpoint}/authenticate", authority=authority
        )
        (folder / "kwok.yaml").write_text(
            kwok_configuration(
                image_pull_seconds=self._settings.image_pull_seconds, start_seconds=self._settings.start_seconds
            )
        )

    def _kubeconfig_of(self, program: str) -> Path:
        return self._folder / f"{program}.kubeconfig"

    def _etcd(self) -> list[str | Path]:
        return [
            self._programs["etcd"],
            f"--data-dir={self._folder / 'etcd'}",
            "--unsafe-no-fsync",  # the cloud's state ends with it
            f"--listen-client-urls={self._store.http}",
            f"--advertise-client-urls={self._store.http}",
            f"--listen-peer-urls={self._peer.http}",
            f"--initial-advertise-peer-urls={self._peer.http}",
            f"--initial-cluster=default={self._peer.http}",
            "--log-level=warn",
        ]

    def _token_webhook(self) -> list[str | Path]:
        pair = self._server_pair
        module = "localcloud.controlplane.webhook"
        return [sys.executable, "-m", module, f"--certificate={pair.certificate}", f"--key={pair.key}"]

    def _api_server(self) -> list[str | Path]:
        pair, tokens = self._server_pair, self._token_key
        return [
            self._programs["kube-apiserver"],
            f"--etcd-servers={self._store.http}",
            f"--bind-address={self._server.host}",
            f"--advertise-address={self._server.host}",
            f"--secure-port={self._server.port}",
            "--endpoint-reconciler-type=none",  # it would refuse to publish a loopback address
            "--service-cluster-ip-range=10.100.0.0/16",  # as EKS: https://docs.aws.amazon.com/eks/latest/APIReference/API_KubernetesNetworkConfigRequest.html
            f"--tls-cert-file={pair.certificate}",
            f"--tls-private-key-file={pair.key}",
            f"--client-ca-file={self.ca_file}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={tokens.certificate}",
            f"--service-account-signing-key-file={tokens.key}",
            f"--token-auth-file={self._admin.file}",
            f"--authentication-token-webhook-config-file={self._folder / 'webhook.kubeconfig'}",
            "--authentication-token-webhook-version=v1",
            "--authentication-token-webhook-cache-ttl=5s",
            f"--audit-policy-file={Path(__file__).parent / 'audit-policy.yaml'}",
            f"--audit-log-path={self.audit_log}",
            "--profiling=false",
        ]

    def _kube_scheduler(self) -> list[str | Path]:
        config = self._kubeconfig_of("kube-scheduler")
        return [
            self._programs["kube-scheduler"],
            f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
            f"--bind-address={self._scheduler.host}",
            f"--secure-port={self._scheduler.port}",
            f"--tls-cert-file={self._server_pair.certificate}",
            f"--tls-private-key-file={self._server_pair.key}",
            "--leader-elect=false",
            "--kube-api-qps=300",  # the flags' defaults would spread the binding of a class over seconds
            "--kube-api-burst=300",
        ]

    def _controller_manager(self) -> list[str | Path]:
        return [
            self._programs["kube-controller-manager"],
            f"--kubeconfig={self._kubeconfig_of('kube-controller-manager')}",
            "--secure-port=0",
            "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self._token_key.key}",
            f"--root-ca-file={self.ca_file}",
            f"--node-monitor-grace-period={self._settings.node_grace_seconds}s",
            "--kube-api-qps=300",
            "--kube-api-burst=300",
        ]

    def _kwok(self) -> list[str | Path]:
        return [
            self._programs["kwok"],
            f"--kubeconfig={self._kubeconfig_of('kwok')}",
            f"--config={self._folder / 'kwok.yaml'}",
            f"--manage-nodes-with-label-selector={DEAD_KUBELET_LABEL}!=dead",
            f"--server-address={self._kubelets.authority}",
            "--cidr=100.64.0.0/16",
            "--node-lease-duration-seconds=40",
        ]
