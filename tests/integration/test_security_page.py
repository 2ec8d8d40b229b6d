"""The policy in docs/security.md, as it stands there, on a real API server."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.control_plane import ControlPlane

PAGE = Path(__file__).resolve().parents[2] / "docs/security.md"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
KINDS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
PROXIES = "/apis/crawl.example.com/v1alpha1/namespaces/default/proxies"
MERGE = "application/merge-patch+json"
IMAGE = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64"


def a_proxy(name: str, **gcp: Any) -> dict[str, Any]:
    block = {"zone": "europe-west4-a", "machineType": "e2-micro", "image": IMAGE, **gcp}
    return {
        "apiVersion": "crawl.example.com/v1alpha1",
        "kind": "Proxy",
        "metadata": {"name": name},
        "spec": {"provider": "gcp", "gcp": block},
    }


@pytest.fixture(scope="module")
def costly(proxy_api: ControlPlane) -> Iterator[str]:
    """A Proxy from before the policy, which is in force now."""
    send = proxy_api.api.send
    assert send("POST", PROXIES, a_proxy("costly", machineType="m3-ultramem-128"))[0] == 201
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        status, answer = send("POST", f"{POLICIES}/{KINDS[document['kind']]}", document)
        assert status == 201, answer
    try:
        end = time.monotonic() + 30
        refused = a_proxy("later", machineType="m3-ultramem-128")
        while send("POST", f"{PROXIES}?dryRun=All", refused)[0] != 422:
            assert time.monotonic() < end, "the policy is not in force"
        yield "costly"
    finally:
        for document in documents:
            name = document["metadata"]["name"]
            send("DELETE", f"{POLICIES}/{KINDS[document['kind']]}/{name}")
        send("DELETE", f"{PROXIES}/costly")


def test_it_bounds_what_a_new_spec_may_cost(proxy_api: ControlPlane, costly: str) -> None:
    def post(document: dict[str, Any]) -> int:
        return proxy_api.api.send("POST", f"{PROXIES}?dryRun=All", document)[0]

    assert post(a_proxy("cheap", diskSizeGB=20)) == 201
    assert post(a_proxy("big", diskSizeGB=21)) == 422
    assert post(a_proxy("somebody", serviceAccount="a@b.iam.gserviceaccount.com")) == 422
    other = a_proxy("other")
    other["spec"] = {"provider": "local"}
    assert post(other) == 201
    path = f"{PROXIES}/{costly}?dryRun=All"
    wider = {"spec": {"gcp": {"diskSizeGB": 10}}}
    assert proxy_api.api.send("PATCH", path, wider, MERGE)[0] == 422


def test_it_lets_the_operator_end_what_was_there_before(
    proxy_api: ControlPlane, costly: str
) -> None:
    path = f"{PROXIES}/{costly}"
    for finalizers in (["crawl.example.com/instance"], []):
        patch: dict[str, Any] = {"metadata": {"finalizers": finalizers}}
        assert proxy_api.api.send("PATCH", path, patch, MERGE)[0] == 200
    patch = {"status": {"phase": "Deleting"}}
    assert proxy_api.api.send("PATCH", f"{path}/status", patch, MERGE)[0] == 200
