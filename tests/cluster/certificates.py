"""Who is who in a test cluster: one authority, one certificate for each program, kubeconfigs.

The user of a certificate is its common name, the group its organization.
"""

import base64
import json
from pathlib import Path

import trustme

SERVICE_DNS = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
ADMINISTRATORS = "system:masters"


class Certificates:
    """Files below one directory, readable by the owner only."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, mode=0o700)
        self._authority = trustme.CA()
        self.authority = self._write("ca.crt", self._authority.cert_pem.bytes())
        self.authority_key = self._write("ca.key", self._authority.private_key_pem.bytes())

    def issue(
        self, name: str, user: str, group: str = "", *, serves: tuple[str, ...] = ("localhost",)
    ) -> tuple[Path, Path]:
        """Write a certificate for a user, or for a server's names, and return it and its key.

        Go refuses a certificate without any name, so clients have one too.
        """
        issued = self._authority.issue_cert(
            *serves, common_name=user, organization_name=group or "tests"
        )
        certificate = self._write(f"{name}.crt", issued.cert_chain_pems[0].bytes())
        return certificate, self._write(f"{name}.key", issued.private_key_pem.bytes())

    def kubeconfig(self, path: Path, server: str, user: str, group: str = "") -> Path:
        """Write a kubeconfig that needs no other file. JSON is YAML."""
        certificate, key = self.issue(path.stem, user, group)
        cluster = {"server": server, "certificate-authority-data": _base64(self.authority)}
        login = {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": login}],
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1))
        return path

    def _write(self, name: str, content: bytes) -> Path:
        path = self._directory / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return path


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
