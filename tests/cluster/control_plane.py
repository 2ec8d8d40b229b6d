"""etcd and kube-apiserver: all that tests of the API need, ready in seconds.

Both keep their state below one directory and speak on loopback, or in the network namespace that
`inside` enters. Nothing else runs: there is no controller, so nothing but the tests writes.
"""

import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.api import Api
from tests.cluster.certificates import ADMINISTRATORS, SERVICE_DNS, Certificates
from tests.cluster.processes import Processes

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


@dataclass(frozen=True)
class Addresses:
    """Where the API server is found: its own address, and the Services' range and its first."""

    api: str = "127.0.0.1"
    services: str = "10.96.0.0/16"
    first_service: str = "10.96.0.1"


class ControlPlane:
    """An API server with RBAC, service-account tokens and an audit log."""

    def __init__(
        self,
        programs: Path,
        state: Path,
        addresses: Addresses | None = None,
        inside: Sequence[str] = (),
    ) -> None:
        self._programs = programs
        self.state = state
        self.addresses = addresses or Addresses()
        self.audit_log = state / "audit.log"
        self.processes = Processes(state / "logs", inside)
        self.kubeconfig = state / "kubeconfig"
        self._port = 0
        self._flags: list[str] = []

    @property
    def url(self) -> str:
        return f"https://{self.addresses.api}:{self._port}"

    @property
    def _is_alone(self) -> bool:
        """Without a node nobody can reach the API server as a Service."""
        return self.addresses.api == "127.0.0.1"

    def start(self) -> None:
        """Start both programs and wait for the API server to be ready; ClusterError if not."""
        # Inside a namespace of its own, every port is free.
        self._port = _free_port() if self._is_alone else 6443
        self.certificates = Certificates(self.state / "pki")
        self.certificates.kubeconfig(self.kubeconfig, self.url, "admin", ADMINISTRATORS)
        self.api = Api(self.kubeconfig)
        self.accounts_key = self.certificates.issue("service-accounts", "service-accounts")[1]
        self._flags = self._apiserver_flags()
        self._start_etcd()
        self.start_apiserver()

    def start_apiserver(self) -> None:
        """Start the API server at the address it had, as after `stop_apiserver`."""
        self.processes.start("kube-apiserver", self._programs / "kube-apiserver", *self._flags)
        self.processes.wait_until("API server", self.api.is_ready, within=120)

    def stop_apiserver(self) -> None:
        """End the API server, kindly for a moment; what it stores stays."""
        self.processes.stop("kube-apiserver", within=3)

    def stop(self) -> None:
        self.processes.end_all()

    def audited(self) -> list[dict[str, Any]]:
        """Return the audit log: one event for each answered request, in order of their answers.

        A request's event may be written a moment after its answer was read.
        """
        lines = self.audit_log.read_text().split("\n")
        # The last is empty, or half written just now.
        return [json.loads(line) for line in lines[:-1]]

    def _start_etcd(self) -> None:
        # Sockets in the state directory: nobody else's etcd is met, and no port is needed.
        clients, peers = (f"unix://{self.state}/{name}.sock" for name in ("etcd", "etcd-peer"))
        self.processes.start(
            "etcd",
            self._programs / "etcd",
            f"--data-dir={self.state}/etcd",
            # The data of a test need not survive a power cut.
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
        )

    def _apiserver_flags(self) -> list[str]:
        pki = self.certificates
        where = self.addresses
        certificate, key = pki.issue(
            "apiserver",
            "kube-apiserver",
            serves=("localhost", "127.0.0.1", where.api, where.first_service, *SERVICE_DNS),
        )
        to_kubelets, to_kubelets_key = pki.issue("to-kubelets", "kube-apiserver", ADMINISTRATORS)
        policy = self.state / "audit-policy.json"
        policy.write_text(json.dumps(AUDIT_POLICY))
        return [
            f"--etcd-servers=unix://{self.state}/etcd.sock",
            f"--bind-address={where.api if self._is_alone else '0.0.0.0'}",
            f"--advertise-address={where.api}",
            f"--secure-port={self._port}",
            f"--service-cluster-ip-range={where.services}",
            f"--endpoint-reconciler-type={'none' if self._is_alone else 'lease'}",
            f"--client-ca-file={pki.authority}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--kubelet-client-certificate={to_kubelets}",
            f"--kubelet-client-key={to_kubelets_key}",
            # A test node's name is in no DNS.
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={self.accounts_key}",
            f"--service-account-signing-key-file={self.accounts_key}",
            "--authorization-mode=Node,RBAC",
            # The second asks for rights that otherwise only some distributions ask for.
            "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
            "--allow-privileged=true",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.audit_log}",
            "--audit-log-mode=blocking",
            # In megabytes: one file for a whole session.
            "--audit-log-maxsize=1000",
        ]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
