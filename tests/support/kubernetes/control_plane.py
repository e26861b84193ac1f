"""A real etcd and a real kube-apiserver with RBAC on this machine. Nothing collects garbage until it is told to, and
nothing schedules; see node.py for a node that runs pods."""

import json
import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from kubernetes.client.rest import ApiException
from urllib3.exceptions import HTTPError

from kubernetes import client
from strait.embedded.ports import free_ports
from support.fixtures.waiting import eventually
from support.kubernetes import binaries

ISSUER = "https://kubernetes.default.svc"


class ControlPlane:
    """Start it, use ``admin`` and ``token_of``, stop it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._etcd_port, self._peer_port, self.port = free_ports(3)
        self.url = f"https://127.0.0.1:{self.port}"
        self._admin_token = secrets.token_hex(16)
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def ca_file(self) -> Path:
        """The certificate that the server made for itself."""
        return self.folder / "certs" / "apiserver.crt"

    @property
    def key_file(self) -> Path:
        return self.folder / "certs" / "apiserver.key"

    def start(self) -> None:
        self._write_keys()
        etcd = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{self._peer_port}"
        etcd_options = {
            "data-dir": self.folder / "etcd",
            "listen-client-urls": etcd,
            "advertise-client-urls": etcd,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "unsafe-no-fsync": "true",
        }
        self._run("etcd", etcd_options)
        options = {
            "etcd-servers": etcd,
            "secure-port": self.port,
            "bind-address": "127.0.0.1",
            "advertise-address": "192.0.2.2",
            "endpoint-reconciler-type": "none",
            "cert-dir": self.folder / "certs",
            "token-auth-file": self.folder / "tokens.csv",
            "service-account-issuer": ISSUER,
            "service-account-key-file": self.folder / "account.pub",
            "service-account-signing-key-file": self.folder / "account.key",
            "api-audiences": ISSUER,
            "authorization-mode": "RBAC",
            "service-cluster-ip-range": "10.96.0.0/16",
        }
        self._run("kube-apiserver", options)
        eventually(self._ready, what=self._last_lines, within_seconds=180.0)

    def collect_garbage(self) -> None:
        """From now on what an object owns is deleted after it."""
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "admin",
            "contexts": [{"name": "admin", "context": {"cluster": "here", "user": "admin"}}],
            "clusters": [{"name": "here", "cluster": {"server": self.url, "certificate-authority": str(self.ca_file)}}],
            "users": [{"name": "admin", "user": {"token": self._admin_token}}],
        }
        path = self.folder / "admin.kubeconfig"
        path.write_text(json.dumps(kubeconfig))
        options = {"kubeconfig": path, "controllers": "garbage-collector-controller", "leader-elect": "false"}
        self._run("kube-controller-manager", options | {"secure-port": "0"})

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)

    def admin(self) -> client.ApiClient:
        """With every right."""
        return self.client(self._admin_token)

    def client(self, token: str) -> client.ApiClient:
        configuration = client.Configuration(host=self.url)
        configuration.ssl_ca_cert = str(self.ca_file)
        configuration.api_key = {"authorization": f"Bearer {token}"}
        return client.ApiClient(configuration)

    def token_of(self, account: str, namespace: str) -> str:
        """A token of a service account, as `kubectl create token` makes it."""
        request = {"spec": {"expirationSeconds": 7200}}
        made = client.CoreV1Api(self.admin()).create_namespaced_service_account_token(account, namespace, request)
        return str(made.status.token)

    def _ready(self) -> bool:
        assert all(process.poll() is None for process in self._processes), self._last_lines()
        if not self.ca_file.exists():
            return False
        try:
            return bool(client.CoreV1Api(self.admin()).list_namespace(_request_timeout=5).items)
        except (ApiException, HTTPError):  # it is not up yet
            return False

    def _run(self, name: str, options: Mapping[str, Any]) -> None:
        command = [str(binaries.compiled(name)), *(f"--{key}={value}" for key, value in options.items())]
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder))

    def _last_lines(self) -> str:
        return "\n".join((self.folder / f"{name}.log").read_text()[-1500:] for name in ("etcd", "kube-apiserver"))

    def _write_keys(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (self.folder / "account.key").write_bytes(private)
        (self.folder / "account.pub").write_bytes(public)
        (self.folder / "tokens.csv").write_text(f'{self._admin_token},admin,1,"system:masters"\n')
