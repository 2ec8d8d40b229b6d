"""An operator as the files below deploy/ install it, on an API server without nodes.

Its process runs beside the tests, as the service account and with the rights that the files give.
"""

import base64
import contextlib
import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from hack.deploy.names import NAME, NAMESPACE

from tests.cluster.control_plane import ControlPlane
from tests.e2e.home import ANY_PORTS, BRISK, COMMAND, environment
from tests.e2e.processes import until

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
_PLURALS = {"NetworkPolicy": "networkpolicies"}
_KEPT = {"Namespace", "CustomResourceDefinition"}


def path_of(document: dict[str, Any]) -> str:
    """Return the path of an object in the API."""
    version, kind, meta = document["apiVersion"], document["kind"], document["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    place = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    return f"{root}{place}/{_PLURALS.get(kind, kind.lower() + 's')}/{meta['name']}"


def apply(plane: ControlPlane, document: dict[str, Any]) -> None:
    """Apply as strictly as an API server can: an unknown field is refused."""
    query = "fieldManager=installer&fieldValidation=Strict&force=true"
    path = f"{path_of(document)}?{query}"
    status, answer = plane.api.send("PATCH", path, document, APPLY)
    assert status in {200, 201}, answer


@contextlib.contextmanager
def installed(plane: ControlPlane, file: str) -> Iterator[None]:
    """Have the objects of an install file for the length of the block.

    Namespace and CRD stay: nobody here finishes their deletion.
    """
    documents = list(yaml.safe_load_all((DEPLOY / file).read_text()))
    try:
        for document in documents:
            apply(plane, document)
        yield
    finally:
        for document in documents:
            if document["kind"] not in _KEPT:
                plane.api.send("DELETE", path_of(document))


def make_namespace(plane: ControlPlane, name: str) -> None:
    """Make a namespace with the service account that Pods need, which nobody else makes here."""
    plane.api.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    plane.api.send("POST", accounts, {"metadata": {"name": "default"}})


def kubeconfig_of_the_account(plane: ControlPlane, path: Path) -> Path:
    """Write a kubeconfig with a token of the operator's service account."""
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token"
    status, answer = plane.api.send("POST", account, {"spec": {"expirationSeconds": 3600}})
    assert status == 201, answer
    authority = base64.b64encode(plane.certificates.authority.read_bytes()).decode()
    cluster = {"server": plane.url, "certificate-authority-data": authority}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "operator"}}],
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "operator", "user": {"token": answer["status"]["token"]}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


@contextlib.contextmanager
def operator(
    plane: ControlPlane, directory: Path, *flags: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run an operator with the account's rights; kill it if the block has not stopped it."""
    kubeconfig = kubeconfig_of_the_account(plane, directory / "kubeconfig")
    token = directory / "token"
    token.write_text("Tok3n-of-the-tests\n")
    command = [COMMAND, "run", "--kubeconfig", str(kubeconfig), *ANY_PORTS, *BRISK]
    command += ["--discovery-token-file", str(token), *flags]
    with (directory / "operator.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment(),
            cwd=directory,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def stop(process: "subprocess.Popen[bytes]") -> int:
    """Stop an operator in order and return its exit code."""
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout=15)


class World:
    """One namespace as its user sees it, and as a scheduler and a kubelet would change it."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self.namespace = namespace
        make_namespace(plane, namespace)

    def send(self, method: str, path: str, body: Any = None, kind: str = MERGE) -> dict[str, Any]:
        """Send a request below the namespace and expect it to succeed."""
        group, _, rest = path.partition(" ")
        full = f"/{group}/namespaces/{self.namespace}/{rest}"
        content_type = kind if method == "PATCH" else "application/json"
        status, answer = self._plane.api.send(method, full, body, content_type)
        assert status < 300, answer
        return answer

    def make(self, path: str, body: dict[str, Any]) -> None:
        self.send("POST", path, body)

    def names(self, path: str) -> list[str]:
        return [item["metadata"]["name"] for item in self.send("GET", path)["items"]]

    def make_proxy(self, name: str, **spec: Any) -> None:
        check = {"interval": "1s", "timeout": "1s", "failureThreshold": 1}
        document = {
            "apiVersion": "crawl.example.com/v1alpha1",
            "kind": "Proxy",
            "metadata": {"name": name},
            "spec": {"healthCheck": check, **spec},
        }
        self.make(PROXIES, document)

    def proxy(self, name: str) -> dict[str, Any]:
        return self.send("GET", f"{PROXIES}/{name}")

    def wait_for_phase(self, name: str, phase: str) -> None:
        until(
            lambda: self.proxy(name).get("status", {}).get("phase") == phase,
            f"{name} is {phase}",
            within=15,
        )

    def pods(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.send("GET", PODS)["items"]
        return items

    def new_pod(self, *, other_than: str = "") -> dict[str, Any]:
        """Wait for a Pod that is not the one with this UID."""

        def others() -> list[dict[str, Any]]:
            return [pod for pod in self.pods() if pod["metadata"]["uid"] != other_than]

        return until(others, "a Pod is made", within=15)[0]

    def schedule(self, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": "nowhere"}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}}
        self.make(f"{PODS}/{name}/binding", {**binding, "target": target})

    def run(self, pod: dict[str, Any], ip: str) -> None:
        status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}
        self.send("PATCH", f"{PODS}/{pod['metadata']['name']}/status", {"status": status})

    def end_pods(self) -> None:
        """Let what is asked to go be gone."""
        for pod in self.pods():
            if pod["metadata"].get("deletionTimestamp"):
                path = f"{PODS}/{pod['metadata']['name']}?gracePeriodSeconds=0"
                self.send("DELETE", path)


PROXIES = "apis/crawl.example.com/v1alpha1 proxies"
PODS = "api/v1 pods"
CONFIG_MAPS = "api/v1 configmaps"
SECRETS = "api/v1 secrets"


class _Answer(BaseHTTPRequestHandler):
    server: "_Proxy"

    def do_GET(self) -> None:
        self.send_response(200 if self.server.is_well.is_set() else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.is_well = threading.Event()
        self.is_well.set()


@contextlib.contextmanager
def a_proxy_server() -> Iterator[_Proxy]:
    """Answer every request as if it had been fetched, or with 503 while it is not well."""
    server = _Proxy()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
