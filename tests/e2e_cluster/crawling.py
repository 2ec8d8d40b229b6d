"""Who asks, and who is asked: crawlers inside and outside the cluster, and the origin inside."""

import json
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import trustme

from tests.e2e_cluster import crawler_program
from tests.e2e_cluster.kube import Kube, until
from tests.e2e_cluster.pods import IDLE, a_pod, running

_HERE = Path(__file__).parent


class Answer(NamedTuple):
    """What came back."""

    status: int
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Crawler(Protocol):
    """Somewhere requests are made from."""

    def ask(self, url: str, **how: Any) -> Answer:
        """Make one request, as `crawler_program.ask`."""


class Outside:
    """This machine, which has a route to Pods and Services."""

    def ask(self, url: str, **how: Any) -> Answer:
        return Answer(**crawler_program.ask(url, **how))


class Inside:
    """A Pod."""

    def __init__(self, kube: Kube, namespace: str, name: str = "crawler") -> None:
        self._kube = kube
        self._place = (f"--namespace={namespace}", name)
        kube.apply(a_pod(namespace, name, command=running(IDLE)))
        kube.kubectl(
            "wait", *self._place[:1], "pod", name, "--for=condition=Ready", "--timeout=60s"
        )

    def ask(self, url: str, **how: Any) -> Answer:
        command = ("exec", "--stdin", *self._place, "--", *running(_source("crawler_program")))
        said = self._kube.kubectl(*command, stdin=json.dumps({"url": url, **how}))
        return Answer(**json.loads(said))


class Origin:
    """A page in the cluster, behind a Service: plain on port 80, TLS on port 443."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        ports = [
            {"name": "plain", "port": 80, "targetPort": 8080},
            {"name": "tls", "port": 443, "targetPort": 8443},
        ]
        spec = {"ports": ports, "selector": {"app": "origin"}}
        service = {"metadata": {"name": "origin"}, "spec": spec}
        made = kube.create(f"api/v1/namespaces/{namespace}/services", service)
        self.host: str = made["spec"]["clusterIP"]
        self.http = f"http://{self.host}/page"
        self.https = f"https://{self.host}/page"
        authority = trustme.CA()
        self.authority = authority.cert_pem.bytes().decode()
        pem = authority.issue_cert(self.host).private_key_and_cert_chain_pem.bytes().decode()
        kube.create(
            f"api/v1/namespaces/{namespace}/secrets",
            {"metadata": {"name": "origin"}, "stringData": {"pem": pem}},
        )
        kube.apply(
            a_pod(
                namespace,
                "origin",
                command=running(_source("origin_program")),
                readinessProbe={"tcpSocket": {"port": 8443}, "periodSeconds": 1},
                volumeMounts=[{"name": "pem", "mountPath": "/certificate"}],
                volumes=[{"name": "pem", "secret": {"secretName": "origin"}}],
            )
        )
        outside = Outside()
        until("page", lambda: outside.ask(self.http).status == 200, within=60)

    @property
    def targets(self) -> tuple[str, str]:
        """Both ports, as --allow-targets takes them."""
        return f"{self.host}:80", f"{self.host}:443"

    def fetch_both(self, crawler: Crawler, proxy: str) -> tuple[Answer, Answer]:
        """Fetch the page through a proxy: plain, and by CONNECT."""
        plain = crawler.ask(self.http, proxy=proxy)
        return plain, crawler.ask(self.https, proxy=proxy, authority=self.authority)


def _source(name: str) -> str:
    return (_HERE / f"{name}.py").read_text()
