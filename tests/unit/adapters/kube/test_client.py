"""Requests: repeated only when that is safe, and every failure an error of the port."""

import aiohttp
import pytest

from proxy_operator.adapters.kube import client as client_module
from proxy_operator.adapters.kube.client import KubeClient, Request
from proxy_operator.runtime.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnavailableError,
)
from tests.unit.adapters.kube.scripted import Answer, ScriptedApi, access_to, served, status

READ = Request("GET", "/things", "things")
WRITE = Request("POST", "/things", "a thing", {"fieldManager": "me"}, b'{"a": 1}')
OK = Answer(document={"ok": True})


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client_module, "_RETRY_BASE", client_module._RETRY_BASE / 100)
    monkeypatch.setattr(client_module, "_LONGEST_PAUSE", 0.01)


async def test_a_request_carries_identity_query_and_type():
    api = ScriptedApi(OK)
    async with served(api) as client:
        assert await client.send(WRITE) == b'{"ok": true}'
    [asked] = api.asked
    assert asked.method == "POST"
    assert asked.query == {"fieldManager": "me"}
    assert asked.body == WRITE.body
    assert asked.headers["Authorization"] == "Bearer t1"
    assert asked.headers["Content-Type"] == "application/json"


async def test_a_refused_identity_is_renewed_once():
    api = ScriptedApi(Answer(401, status(401, "Unauthorized", "Unauthorized")), OK)
    async with served(api, "old", "new") as client:
        await client.send(WRITE)
    assert [a.headers["Authorization"] for a in api.asked] == ["Bearer old", "Bearer new"]
    assert [a.body for a in api.asked] == [WRITE.body] * 2


@pytest.mark.parametrize("tokens", [("only",), ("old", "new", "newest")])
async def test_an_identity_refused_for_good_is_forbidden(tokens):
    api = ScriptedApi(Answer(401, status(401, "Unauthorized", "who are you")))
    async with served(api, *tokens) as client:
        with pytest.raises(ForbiddenError, match="does not accept our credentials"):
            await client.send(READ)
    assert len(api.asked) == min(len(tokens), 2)


async def test_what_the_server_turned_away_is_asked_again_even_a_write():
    busy = Answer(429, status(429, "TooManyRequests", "busy"), headers={"Retry-After": "1"})
    api = ScriptedApi(busy, busy, OK)
    async with served(api) as client:
        await client.send(WRITE)
    assert [a.body for a in api.asked] == [WRITE.body] * 3


async def test_a_server_busy_for_long_is_unavailable():
    api = ScriptedApi(Answer(429, status(429, "TooManyRequests", "busy")))
    async with served(api) as client:
        with pytest.raises(UnavailableError, match="busy"):
            await client.send(READ)
    assert len(api.asked) == 4


@pytest.mark.parametrize(("request_", "times"), [(READ, 4), (WRITE, 1)])
async def test_a_server_error_is_asked_again_for_reads_only(request_, times):
    api = ScriptedApi(Answer(500, status(500, "InternalError", "etcd is away")))
    async with served(api) as client:
        with pytest.raises(UnavailableError, match="etcd is away"):
            await client.send(request_)
    assert len(api.asked) == times


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [(404, "NotFound", NotFoundError), (409, "Conflict", ConflictError)],
)
async def test_a_refusal_is_not_asked_again(code, reason, error):
    api = ScriptedApi(Answer(code, status(code, reason, "no")))
    async with served(api) as client:
        with pytest.raises(error):
            await client.send(READ)
    assert len(api.asked) == 1


async def test_a_server_that_is_not_there_is_unavailable():
    async with KubeClient(access_to("http://127.0.0.1:1")) as client:
        with pytest.raises(UnavailableError, match="cannot be reached"):
            await client.send(READ)


async def test_a_server_that_does_not_answer_is_unavailable(monkeypatch):
    monkeypatch.setattr(client_module, "_ORDINARY", aiohttp.ClientTimeout(total=0.05))
    api = ScriptedApi(Answer(hangs=True))
    async with served(api) as client:
        with pytest.raises(UnavailableError, match="does not answer about a thing"):
            await client.send(WRITE)


async def test_a_cut_answer_is_unavailable():
    api = ScriptedApi(Answer(chunks=(b'{"half',), cuts=True))
    async with served(api) as client:
        with pytest.raises(UnavailableError):
            await client.send(WRITE)


async def test_redirects_are_not_followed_with_our_token():
    api = ScriptedApi(Answer(307, {}, headers={"Location": "http://127.0.0.1:1/"}))
    async with served(api) as client:
        with pytest.raises(UnavailableError, match="307"):
            await client.send(READ)
    assert len(api.asked) == 1


async def test_the_environments_proxy_has_no_influence(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with served(ScriptedApi(OK)) as client:
        await client.send(READ)


async def test_an_abandoned_stream_gives_its_connection_back():
    api = ScriptedApi(Answer(chunks=(b"x",), hangs=True))
    async with served(api) as client:
        for _ in range(100):  # more than the pool holds
            async with client.stream(READ, silent_for=client_module.ANSWER) as content:
                assert await content.readany() == b"x"
