"""The operator as somebody installs it: deploy/install.yaml, with what one fills in there."""

import uuid
from pathlib import Path
from typing import Any

import yaml

from tests.e2e_cluster.crawling import Answer, Crawler, Origin
from tests.e2e_cluster.kube import Kube

DEPLOY = Path(__file__).parents[2] / "deploy"
INSTALL = DEPLOY / "install.yaml"
NAMESPACE = "proxy-operator"
CRAWLERS = {"crawl.example.com/crawlers": "true"}
# Shorter than the defaults: a test waits for several of them in a row. At the debug level so
# that what is looked for in the logs is looked for in all of them.
_FASTER = (
    "--provisioning-poll=1s",
    "--deletion-poll=1s",
    "--drift-poll=3s",
    "--quota-retry=3s",
    "--log-level=debug",
)


class Installation:
    """The operator's Deployment and its API."""

    def __init__(self, kube: Kube, origin: Origin) -> None:
        self._kube = kube
        self.token = uuid.uuid4().hex
        documents = list(yaml.safe_load_all(INSTALL.read_text()))
        for document in documents:
            if document["kind"] == "Deployment":
                _fill_in(document, origin)
        secret = {"name": "discovery-token", "namespace": NAMESPACE}
        token = {"kind": "Secret", "metadata": secret, "stringData": {"token": self.token}}
        kube.apply(*documents, {"apiVersion": "v1", **token})
        service = kube.get(f"api/v1/namespaces/{NAMESPACE}/services/proxy-operator")
        assert service
        self.api = f"http://{service['spec']['clusterIP']}:8090"

    def wait_available(self) -> None:
        """Wait until the operator leads and its API answers."""
        self._kube.kubectl(
            "wait", f"--namespace={NAMESPACE}", "deployment/proxy-operator",
            "--for=condition=Available", "--timeout=90s",
        )  # fmt: skip

    def pods(self) -> list[dict[str, Any]]:
        """Return the operator's Pods."""
        return self._kube.items(f"api/v1/namespaces/{NAMESPACE}/pods")

    def leader(self) -> str:
        """Return who holds the lock; empty when nobody does."""
        path = f"apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/proxy-operator"
        lock = self._kube.get(path)
        return (lock or {}).get("spec", {}).get("holderIdentity") or ""

    def ask(self, crawler: Crawler, method: str, path: str, body: Any = None) -> Answer:
        """Ask the discovery API, over its Service."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        return crawler.ask(f"{self.api}{path}", method=method, headers=headers, body=body)

    def lease(self, crawler: Crawler, **body: Any) -> dict[str, Any]:
        """Lease a proxy, and return the grant."""
        answer = self.ask(crawler, "POST", "/v1/leases", body)
        assert answer.status == 201, answer
        grant: dict[str, Any] = answer.json
        return grant


def install_kind(kube: Kube) -> None:
    """Install the CRD alone."""
    kube.kubectl("apply", f"--filename={DEPLOY / 'crd.yaml'}")
    name = "crd/proxies.crawl.example.com"
    kube.kubectl("wait", name, "--for=condition=Established", "--timeout=30s")


def uninstall(kube: Kube) -> None:
    """Take away whatever is installed."""
    kube.kubectl("delete", f"--filename={INSTALL}", "--ignore-not-found", "--timeout=60s")


def _fill_in(deployment: dict[str, Any], origin: Origin) -> None:
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    kept = [one for one in container["args"] if not one.startswith("--health-url")]
    allowed = [f"--allow-targets={target}" for target in origin.targets]
    container["args"] = [*kept, f"--health-url={origin.http}", *allowed, *_FASTER]
