"""As little of a Kubernetes client as the tests need to look at a cluster and to spoil it.

Blocking, and independent of the operator's own client: a test must not believe what it tests.
"""

import base64
import json
import ssl
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import yaml


class Api:
    """Requests as the user of a kubeconfig's current context (client certificate or token)."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        self.url = cluster["server"]
        self._tls = ssl.create_default_context(cadata=_text(cluster, "certificate-authority"))
        self._headers: dict[str, str] = {}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        else:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
                pem.write(_text(user, "client-certificate") + _text(user, "client-key"))
                pem.flush()
                self._tls.load_cert_chain(pem.name)

    def send(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, dict[str, Any]]:
        """Return the HTTP status and the JSON answer, or nothing where it is no JSON."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path,
            data=data,
            method=method,
            headers={**self._headers, "Content-Type": content_type},
        )
        # The machine's proxy settings are no business of a test cluster.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._tls)
        )
        try:
            with opener.open(request, timeout=30) as answer:
                return answer.status, _json(answer.headers.get_content_type(), answer.read())
        except urllib.error.HTTPError as err:
            with err:
                return err.code, _json(err.headers.get_content_type(), err.read())

    def is_ready(self) -> bool:
        """Tell whether the API server serves requests."""
        try:
            return self.send("GET", "/readyz")[0] == 200
        except OSError:
            return False


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _text(entry: dict[str, str], name: str) -> str:
    if f"{name}-data" in entry:
        return base64.b64decode(entry[f"{name}-data"]).decode()
    return Path(entry[name]).read_text()


def _json(content_type: str, body: bytes) -> dict[str, Any]:
    return json.loads(body) if content_type == "application/json" else {}
