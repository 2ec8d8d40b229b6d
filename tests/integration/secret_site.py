"""A namespace with Secrets, and with proxies on this machine that ask for what they hold."""

import base64
from typing import Any

from tests.e2e.home import Ended, Operator
from tests.integration.replicas import ClusterSite

CREDENTIALS = "crawl.example.com/credentials"
CLOUD_INIT = "crawl.example.com/cloud-init"


class SecretSite(ClusterSite):
    """A site of which the tests look at conditions, Secrets and Events."""

    def operator(self, *flags: str) -> Operator:
        """Start an operator and return when it leads."""
        return self.leader(*flags).operator

    def show(self, *arguments: str) -> Ended:
        """Run a command on this namespace."""
        return self.cli(*arguments, "-n", self.namespace)

    def make_proxy(self, name: str, **spec: Any) -> None:
        self.create(
            {
                "apiVersion": "crawl.example.com/v1alpha1",
                "kind": "Proxy",
                "metadata": {"name": name},
                "spec": spec,
            }
        )

    def proxy(self, name: str) -> dict[str, Any]:
        return self.send("GET", self.path("proxies", name))

    def condition(self, name: str, kind: str) -> tuple[str, str, str]:
        """Return status, reason and message, or nothing of each."""
        for row in self.proxy(name).get("status", {}).get("conditions", ()):
            if row["type"] == kind:
                return row["status"], row["reason"], row.get("message", "")
        return "", "", ""

    def make_secret(self, name: str, *labels: str, **data: str) -> None:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
        metadata = {"name": name, "labels": dict.fromkeys(labels, "true")}
        manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}
        self.create(manifest)

    def relabel(self, name: str, *labels: str) -> None:
        """Give a Secret just these labels, in one write."""
        secret = self.send("GET", self.path("secrets", name))
        secret["metadata"]["labels"] = dict.fromkeys(labels, "true")
        self.send("PUT", self.path("secrets", name), secret)

    def delete_secret(self, name: str) -> None:
        self.send("DELETE", self.path("secrets", name))

    def events(self) -> list[dict[str, Any]]:
        """Return the Events that the API server has of this namespace."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        found: list[dict[str, Any]] = self.send("GET", path)["items"]
        return found


def an_endpoint(port: int, secret: str, **spec: Any) -> dict[str, Any]:
    """The spec of a proxy on this machine that is probed every second."""
    return {
        "mode": "External",
        "endpoint": {"host": "127.0.0.1", "port": port},
        "credentialsSecretRef": {"name": secret},
        "healthCheck": {"interval": "1s", "timeout": "1s", "url": "http://target.example/"},
        **spec,
    }
