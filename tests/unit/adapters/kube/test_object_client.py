"""What the object port asks of an API server. That the server agrees is the contract's to show."""

from typing import Any

import msgspec
import pytest

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.adapters.kube.object_client import KubeObjectClient
from proxy_operator.domain.kinds import to_document
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.runtime.errors import ConflictError, InvalidError
from proxy_operator.runtime.objects import (
    ApplyOutcome,
    MetadataPatch,
    ObjectKey,
    Preconditions,
)
from proxy_operator.testing.object_client_contract import a_manifest, a_secret_manifest, with_status
from tests.builders import an_external
from tests.unit.adapters.kube.scripted import Answer, Asked, ScriptedApi, served, status

KEY = ObjectKey("team", "p1")
PATH = "/apis/crawl.example.com/v1alpha1/namespaces/team/proxies"
MISSING = Answer(404, status(404, "NotFound"))
CONFLICT = Answer(409, status(409, "Conflict", "the object has been modified"))


def stored(version: int = 7, **spec: Any) -> dict[str, Any]:
    """A Proxy as the server has it, with members that are none of our business."""
    document = Admission().admit(a_manifest("team", **spec))
    document["metadata"] |= {
        "uid": "uid-1",
        "resourceVersion": str(version),
        "generation": 1,
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "managedFields": [{"manager": "kubectl"}],
        "labels": {"a": "1"},
    }
    return document


async def ask(api: ScriptedApi, act: Any) -> Any:
    async with served(api) as client:
        return await act(KubeObjectClient(client, Admission()))


def requests_of(api: ScriptedApi) -> list[tuple[str, str]]:
    return [(asked.method, asked.path) for asked in api.asked]


async def test_a_status_is_replaced_for_one_version_of_one_object():
    api = ScriptedApi(Answer(document=stored(8)))
    proxy = with_status(msgspec.convert(stored(), Proxy))
    await ask(api, lambda client: client.patch_status(proxy))
    [asked] = api.asked
    assert (asked.method, asked.path) == ("PATCH", f"{PATH}/p1/status")
    assert asked.headers["Content-Type"] == "application/json-patch+json"
    assert asked.document == [
        {"op": "replace", "path": "/metadata/uid", "value": "uid-1"},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
        {"op": "add", "path": "/status", "value": to_document(proxy)["status"]},
    ]


async def test_a_kind_without_status_is_a_mistake_of_ours():
    secret = msgspec.convert({"metadata": {"name": "s"}}, Secret)
    with pytest.raises(TypeError):
        await ask(ScriptedApi(MISSING), lambda client: client.patch_status(secret))


async def test_metadata_is_merged_with_its_preconditions_inside():
    api = ScriptedApi(Answer(document=stored()))
    patch = MetadataPatch({"a": None, "b": "2"}, {}, ["f/x"])
    await ask(api, lambda c: c.patch_metadata(Proxy, KEY, Preconditions("uid-1", "7"), patch))
    await ask(api, lambda c: c.patch_metadata(Proxy, KEY, Preconditions("uid-1"), MetadataPatch()))
    first, second = (asked.document for asked in api.asked)
    assert first == {
        "metadata": {
            "uid": "uid-1",
            "resourceVersion": "7",
            "labels": {"a": None, "b": "2"},
            "finalizers": ["f/x"],
        }
    }
    assert second == {"metadata": {"uid": "uid-1"}}
    assert api.asked[0].headers["Content-Type"] == "application/merge-patch+json"


async def test_create_sends_no_status_and_lets_no_field_be_lost():
    api = ScriptedApi(Answer(201, stored()))
    await ask(api, lambda client: client.create(with_status(an_external("p1"))))
    [asked] = api.asked
    assert "status" not in asked.document
    assert asked.query == {"fieldManager": "proxy-operator", "fieldValidation": "Strict"}


@pytest.mark.parametrize(
    ("preconditions", "sent"),
    [
        (None, None),
        (Preconditions("uid-1"), {"uid": "uid-1"}),
        (Preconditions("uid-1", "7"), {"uid": "uid-1", "resourceVersion": "7"}),
    ],
)
async def test_delete_says_which_object_is_meant(preconditions, sent):
    api = ScriptedApi(Answer(document={}))
    await ask(api, lambda client: client.delete(Proxy, KEY, preconditions))
    [asked] = api.asked
    assert (asked.method, asked.path) == ("DELETE", f"{PATH}/p1")
    assert asked.document.get("preconditions") == sent


async def test_apply_creates_what_is_missing():
    api = ScriptedApi(MISSING, Answer(201, stored()))
    applied = await ask(api, lambda client: client.apply(a_manifest("team")))
    assert applied.outcome is ApplyOutcome.CREATED
    assert requests_of(api) == [("GET", f"{PATH}/p1"), ("POST", PATH)]


async def test_apply_of_equal_content_writes_nothing():
    api = ScriptedApi(Answer(document=stored()))
    applied = await ask(api, lambda client: client.apply(a_manifest("team")))
    assert applied.outcome is ApplyOutcome.UNCHANGED
    assert requests_of(api) == [("GET", f"{PATH}/p1")]


async def test_apply_replaces_the_spec_and_merges_labels():
    api = ScriptedApi(Answer(document=stored(maxLeases=3)), Answer(document=stored(8)))
    manifest = a_manifest("team")
    manifest["metadata"]["labels"] = {"b": "2"}
    applied = await ask(api, lambda client: client.apply(manifest))
    assert applied.outcome is ApplyOutcome.CONFIGURED
    steps = {step["path"]: step.get("value") for step in api.asked[1].document}
    assert steps["/metadata/uid"] == "uid-1"
    assert steps["/metadata/resourceVersion"] == "7"
    assert steps["/metadata/labels"] == {"a": "1", "b": "2"}
    assert "maxLeases" not in steps["/spec"]
    assert "/status" not in steps


async def test_what_another_version_of_the_crd_fills_in_is_no_change():
    newer = stored()
    newer["spec"]["fromTheFuture"] = {}
    api = ScriptedApi(Answer(document=newer), Answer(document=newer))
    applied = await ask(api, lambda client: client.apply(a_manifest("team")))
    assert applied.outcome is ApplyOutcome.UNCHANGED


async def test_apply_reads_again_when_somebody_was_faster():
    exists = Answer(409, status(409, "AlreadyExists", "exists"))
    api = ScriptedApi(
        MISSING,
        exists,
        Answer(document=stored(maxLeases=3)),
        CONFLICT,
        Answer(document=stored(8, maxLeases=4)),
        Answer(document=stored(9)),
    )
    applied = await ask(api, lambda client: client.apply(a_manifest("team")))
    assert applied.outcome is ApplyOutcome.CONFIGURED
    versions = [
        step["value"]
        for step in api.asked[-1].document
        if step["path"] == "/metadata/resourceVersion"
    ]
    assert versions == ["8"]


async def test_apply_gives_up_when_somebody_is_always_faster():
    class Contested(ScriptedApi):
        async def handle(self, request: Any) -> Any:
            self.answers.clear()
            is_read = request.method == "GET"
            self.answers.append(Answer(document=stored(maxLeases=3)) if is_read else CONFLICT)
            return await super().handle(request)

    api = Contested(CONFLICT)
    with pytest.raises(ConflictError):
        await ask(api, lambda client: client.apply(a_manifest("team")))
    assert len(api.asked) == 10


async def test_apply_of_a_secret_takes_data_away():
    secret = {**a_secret_manifest("team", data={"k": "dg=="}), "type": "Opaque"}
    secret["metadata"] |= {"uid": "uid-2", "resourceVersion": "3"}
    api = ScriptedApi(Answer(document=secret))
    await ask(api, lambda client: client.apply(a_secret_manifest("team")))
    asked: Asked = api.asked[1]
    assert asked.path == "/api/v1/namespaces/team/secrets/s1"
    assert {"op": "add", "path": "/data", "value": {}} in asked.document


async def test_a_manifest_without_a_name_is_never_sent():
    api = ScriptedApi(MISSING)
    with pytest.raises(InvalidError):
        await ask(api, lambda client: client.apply({"kind": "Proxy", "metadata": {}}))
    assert api.asked == []
