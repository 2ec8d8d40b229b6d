"""A real API server and this project's admission say the same of every manifest."""

import re
from typing import Any

import pytest

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.runtime.errors import InvalidError
from tests.unit.adapters.admission.manifests import METADATA, PROXIES, UPDATES, Case

PROXIES_PATH = "/apis/crawl.example.com/v1alpha1/namespaces/default/proxies"
# Strict decoding stops the API server before validation; ours reports both at once.
UNKNOWN = re.compile(r'unknown field "([^"]+)"')


@pytest.fixture
def server(proxy_api):
    return proxy_api.api


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
