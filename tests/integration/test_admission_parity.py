"""A real API server and this project's admission say the same of every manifest.

Needs the kubeconfig of a cluster to spoil in TEST_KUBECONFIG (client certificate or token).
"""

import base64
import json
import os
import re
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy_operator.adapters.admission.crd import document
from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.runtime.errors import InvalidError
from tests.unit.adapters.admission.manifests import METADATA, PROXIES, UPDATES, Case

KUBECONFIG = os.environ.get("TEST_KUBECONFIG", "")
if not KUBECONFIG:
    pytest.fail("set TEST_KUBECONFIG to the kubeconfig of a kube-apiserver", pytrace=False)

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PROXIES_PATH = "/apis/crawl.example.com/v1alpha1/namespaces/default/proxies"
# Strict decoding stops the API server before validation; ours reports both at once.
UNKNOWN = re.compile(r'unknown field "([^"]+)"')


class Server:
    """As little of a Kubernetes client as this needs."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        self._url = cluster["server"]
        self._tls = ssl.create_default_context(cadata=self._text(cluster, "certificate-authority"))
        self._headers = {"Content-Type": "application/json"}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        else:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
                pem.write(self._text(user, "client-certificate") + self._text(user, "client-key"))
                pem.flush()
                self._tls.load_cert_chain(pem.name)

    @staticmethod
    def _text(entry: dict[str, str], name: str) -> str:
        if f"{name}-data" in entry:
            return base64.b64decode(entry[f"{name}-data"]).decode()
        return Path(entry[name]).read_text()

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._url + path, data=data, method=method, headers=self._headers
        )
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as err:
            with err:
                text = err.read()
            is_status = err.headers.get_content_type() == "application/json"
            return err.code, json.loads(text) if is_status else {}


@pytest.fixture(scope="module")
def server():
    server = Server(Path(KUBECONFIG))
    crd = document()
    status, answer = server.send("POST", CRDS, crd)
    if status == 409:
        path = f"{CRDS}/{crd['metadata']['name']}"
        crd["metadata"]["resourceVersion"] = server.send("GET", path)[1]["metadata"][
            "resourceVersion"
        ]
        status, answer = server.send("PUT", path, crd)
    assert status in {200, 201}, answer
    end = time.monotonic() + 30
    while server.send("GET", PROXIES_PATH)[0] != 200:
        assert time.monotonic() < end, "the API server does not serve proxies"
    return server


def verdict(answer: dict[str, Any]) -> set[str]:
    """Fields that a refusal names."""
    unknown = set(UNKNOWN.findall(answer["message"]))
    causes = answer.get("details", {}).get("causes", [])
    return unknown or {plain(cause["field"]) for cause in causes if cause["field"] != "<nil>"}


def plain(field: str) -> str:
    """Write map keys alike: the API server has `spec.attributes.a`, and `[a]` after CEL."""
    return re.sub(r"\[([A-Za-z][^\]]*)\]", r".\1", field)


def ours(case: Case) -> set[str]:
    try:
        Admission().admit(case.manifest, case.old)
    except InvalidError as err:
        return {error.field for error in err.errors}
    return set()


def blames(answer: dict[str, Any], fields: set[str]) -> bool:
    """Tell whether a refusal names only fields of ours, or an object around one.

    The API server blames the object whose rule could not be evaluated, as for a text that is no
    duration; it may stop early and name fewer.
    """
    named = verdict(answer)
    return bool(named) and all(
        any(field == name or field.startswith(f"{name}.") for field in fields) for name in named
    )


@pytest.mark.parametrize("case", [*PROXIES, *METADATA], ids=lambda case: case.name)
def test_create_is_judged_alike(server, case):
    status, answer = server.send(
        "POST", f"{PROXIES_PATH}?dryRun=All&fieldValidation=Strict", case.manifest
    )

    assert (status == 201) == (not case.refused), answer
    if case.refused:
        assert blames(answer, ours(case)), answer
    else:
        assert answer["spec"] == Admission().admit(case.manifest)["spec"]


@pytest.mark.parametrize("case", UPDATES, ids=lambda case: case.name)
def test_update_is_judged_alike(server, case):
    path = f"{PROXIES_PATH}/p1"
    server.send("DELETE", path)
    status, stored = server.send("POST", PROXIES_PATH, case.old)
    assert status == 201, stored

    version = stored["metadata"]["resourceVersion"]
    changed = {
        **case.manifest,
        "metadata": {**case.manifest["metadata"], "resourceVersion": version},
    }
    status, answer = server.send("PUT", f"{path}?dryRun=All&fieldValidation=Strict", changed)

    assert (status == 200) == (not case.refused), answer
    if case.refused:
        assert blames(answer, ours(case._replace(old=stored))), answer
    server.send("DELETE", path)
