"""Documents of other kinds: paths, pages, and which very object is meant."""

from typing import Any

import pytest

from proxy_operator.adapters.kube.resources import (
    CONFIG_MAP,
    NAMESPACE,
    POD,
    DeleteOptions,
    ResourceClient,
)
from proxy_operator.runtime.objects import ObjectKey
from tests.unit.adapters.kube.scripted import Answer, ScriptedApi, served

KEY = ObjectKey("team", "p1")
DOCUMENT = {"metadata": {"namespace": "team", "name": "p1"}}


async def ask(api: ScriptedApi, act: Any) -> Any:
    async with served(api) as client:
        return await act(ResourceClient(client))


async def test_a_kind_of_the_cluster_has_no_namespace_in_its_path():
    api = ScriptedApi(Answer(document={"metadata": {"uid": "u"}}))
    found = await ask(api, lambda client: client.get(NAMESPACE, ObjectKey("", "kube-system")))
    assert found == {"metadata": {"uid": "u"}}
    assert api.asked[0].path == "/api/v1/namespaces/kube-system"


async def test_a_list_is_read_to_its_end():
    api = ScriptedApi(
        Answer(document={"metadata": {"continue": "t2"}, "items": [{"n": 1}]}),
        Answer(document={"metadata": {}, "items": [{"n": 2}]}),
    )
    found = await ask(api, lambda client: client.list(POD, labels={"a": "b"}))
    assert found == [{"n": 1}, {"n": 2}]
    assert [asked.path for asked in api.asked] == ["/api/v1/pods"] * 2
    assert api.asked[1].query == {"labelSelector": "a=b", "limit": "500", "continue": "t2"}


async def test_an_empty_list_may_be_null():
    api = ScriptedApi(Answer(document={"metadata": {}, "items": None}))
    assert await ask(api, lambda client: client.list(POD, namespace="team")) == []
    assert api.asked[0].path == "/api/v1/namespaces/team/pods"


async def test_create_goes_to_the_collection():
    api = ScriptedApi(Answer(201, DOCUMENT))
    await ask(api, lambda client: client.create(POD, DOCUMENT, "me"))
    [asked] = api.asked
    assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/team/pods")
    assert asked.query["fieldManager"] == "me"


async def test_apply_is_server_side_and_takes_fields_over():
    api = ScriptedApi(Answer(document=DOCUMENT))
    await ask(api, lambda client: client.apply(CONFIG_MAP, DOCUMENT, "me"))
    [asked] = api.asked
    assert asked.method == "PATCH"
    assert asked.headers["Content-Type"] == "application/apply-patch+yaml"
    assert asked.query == {"fieldManager": "me", "force": "true"}
    assert asked.document == {"apiVersion": "v1", "kind": "ConfigMap", **DOCUMENT}


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (None, {}),
        (DeleteOptions("u"), {"preconditions": {"uid": "u"}}),
        (
            DeleteOptions("u", "7", 0),
            {"preconditions": {"uid": "u", "resourceVersion": "7"}, "gracePeriodSeconds": 0},
        ),
    ],
)
async def test_delete_says_which_object_and_how_soon(options, sent):
    api = ScriptedApi(Answer(document={}))
    await ask(api, lambda client: client.delete(POD, KEY, options))
    assert api.asked[0].document == {"propagationPolicy": "Background", **sent}
