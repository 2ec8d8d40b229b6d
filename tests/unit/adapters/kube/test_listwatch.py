"""Lists in pages and watches as lines: nothing lost, nothing invented, silence noticed."""

import json
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest

from proxy_operator.adapters.kube.listwatch import ListWatch, Scope, WatchTimes
from proxy_operator.domain.kinds import PROXY, to_document
from proxy_operator.runtime.errors import ExpiredError, UnavailableError
from proxy_operator.runtime.objects import WatchEventType
from tests.builders import an_external
from tests.unit.adapters.kube.scripted import Answer, ScriptedApi, served, status

QUICK = WatchTimes(timedelta(milliseconds=30), timedelta(milliseconds=30))


def a_document(name: str, version: int, **attributes: str) -> dict[str, Any]:
    document: dict[str, Any] = to_document(an_external(name))
    document["metadata"] |= {
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
    }
    document["spec"]["attributes"] = attributes
    return document


def a_page(version: int, *items: dict[str, Any], more: str = "") -> Answer:
    return Answer(
        document={"metadata": {"resourceVersion": str(version), "continue": more}, "items": items}
    )


def a_line(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}, ensure_ascii=False).encode() + b"\n"


def a_stream(*lines: bytes, **more: Any) -> Answer:
    return Answer(chunks=lines, **more)


UNREADABLE = {**a_document("bad", 12), "spec": {"mode": "Sideways"}}


async def watched(*answers: Answer, times: WatchTimes | None = None) -> list[str]:
    """Follow one watch to its end; `!` and the name of what ended it, if it was an error."""
    told = []
    api = ScriptedApi(*answers)
    async with served(api) as client:
        stream = ListWatch(client, times).watch(PROXY, Scope(), "10")
        try:
            async with aclosing(stream):
                async for event in stream:
                    name = event.object.metadata.name if event.object else ""
                    told.append(f"{event.type} {name}@{event.resource_version}")
        except (ExpiredError, UnavailableError) as err:
            told.append(f"!{type(err).__name__}")
    return told


async def listed(*answers: Answer, scope: Scope | None = None):
    api = ScriptedApi(*answers)
    async with served(api) as client:
        return await ListWatch(client).list(PROXY, scope or Scope()), api


async def test_a_list_is_read_page_by_page():
    found, api = await listed(
        a_page(7, a_document("a", 1), more="t2"),
        a_page(7, a_document("b", 2)),
        scope=Scope("ns", {"team": "a", "x/y": "z"}),
    )
    assert [o.metadata.name for o in found.items] == ["a", "b"]
    assert (found.resource_version, found.unreadable) == ("7", ())
    first, second = api.asked
    assert first.path == "/apis/crawl.example.com/v1alpha1/namespaces/ns/proxies"
    assert first.query == {"labelSelector": "team=a,x/y=z", "limit": "500"}
    assert second.query == {**first.query, "continue": "t2"}


async def test_an_expired_page_begins_the_list_anew():
    gone = Answer(410, status(410, "Expired", "continue token has expired"))
    found, _ = await listed(
        a_page(7, a_document("a", 1), more="t2"), gone, a_page(9, a_document("b", 2))
    )
    assert [o.metadata.name for o in found.items] == ["b"]
    assert found.resource_version == "9"


async def test_a_list_that_expires_again_and_again_is_expired():
    gone = Answer(410, status(410, "Expired", "too old"))
    with pytest.raises(ExpiredError):
        await listed(gone)


async def test_an_object_that_cannot_be_read_is_named_as_there(caplog):
    found, _ = await listed(a_page(7, UNREADABLE, a_document("a", 1)))
    assert [o.metadata.name for o in found.items] == ["a"]
    assert found.unreadable == ("uid-bad",)
    [record] = caplog.records
    assert record.__dict__["key"] == "default/bad"


async def test_a_missing_crd_says_what_to_do():
    with pytest.raises(UnavailableError, match="install the CRD"):
        await listed(Answer(404, status(404, "NotFound", "not here")))


async def test_a_list_that_is_none():
    with pytest.raises(UnavailableError, match="list of proxies cannot be read"):
        await listed(Answer(document={"items": 3}))


async def test_events_in_their_order_after_a_bookmark():
    told = await watched(
        a_stream(
            a_line("ADDED", a_document("a", 11)),
            a_line("MODIFIED", a_document("a", 12)),
            a_line("BOOKMARK", {"metadata": {"resourceVersion": "15"}}),
            a_line("DELETED", a_document("a", 16)),
        )
    )
    assert told == ["BOOKMARK @10", "ADDED a@11", "MODIFIED a@12", "BOOKMARK @15", "DELETED a@16"]


async def test_a_watch_asks_for_bookmarks_and_an_end():
    api = ScriptedApi(a_stream(b"\n"))
    async with served(api) as client:
        scope = Scope("ns", {"team": "a"})
        async for _ in ListWatch(client).watch(PROXY, scope, "10"):
            pass
    [asked] = api.asked
    seconds = int(asked.query.pop("timeoutSeconds"))
    assert 60 <= seconds <= 90
    assert asked.query == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": "10",
        "labelSelector": "team=a",
    }


@pytest.mark.parametrize("text", ["a\u2028b", "a\u0085b", "\u2029", "a\\nb", "ü" * 400])
async def test_only_the_line_feed_byte_ends_a_line(text):
    line = a_line("ADDED", a_document("a", 11, note=text))
    halves = [line[i : i + 7] for i in range(0, len(line), 7)]
    assert await watched(a_stream(*halves)) == ["BOOKMARK @10", "ADDED a@11"]


async def test_two_lines_in_one_piece_and_the_beginning_of_a_third():
    lines = a_line("ADDED", a_document("a", 11)) + a_line("ADDED", a_document("b", 12))
    told = await watched(a_stream(lines + b'{"type": "ADD'))
    assert told == ["BOOKMARK @10", "ADDED a@11", "ADDED b@12"]


async def test_history_may_expire_as_an_http_status():
    gone = Answer(410, status(410, "Expired", "too old resource version"))
    assert await watched(gone) == ["!ExpiredError"]


async def test_history_may_expire_in_the_stream():
    gone = status(410, "Expired", "too old resource version: 10 (99)")
    told = await watched(a_stream(a_line("ADDED", a_document("a", 11)), a_line("ERROR", gone)))
    assert told == ["BOOKMARK @10", "ADDED a@11", "!ExpiredError"]


async def test_another_error_in_the_stream_is_unavailable():
    told = await watched(a_stream(a_line("ERROR", status(500, "InternalError", "decoding"))))
    assert told == ["BOOKMARK @10", "!UnavailableError"]


async def test_silence_without_an_end_is_noticed():
    told = await watched(a_stream(a_line("ADDED", a_document("a", 11)), hangs=True), times=QUICK)
    assert told == ["BOOKMARK @10", "ADDED a@11", "!UnavailableError"]


async def test_a_cut_connection_is_noticed():
    told = await watched(a_stream(a_line("ADDED", a_document("a", 11)), cuts=True))
    assert told == ["BOOKMARK @10", "ADDED a@11", "!UnavailableError"]


async def test_a_watched_object_that_cannot_be_read_moves_the_version_only(caplog):
    told = await watched(
        a_stream(a_line("MODIFIED", UNREADABLE), a_line("ADDED", a_document("a", 13)))
    )
    assert told == ["BOOKMARK @10", "BOOKMARK @12", "ADDED a@13"]
    assert "cannot be read" in caplog.text


async def test_garbage_is_unavailable():
    assert await watched(a_stream(b"<html>\n")) == ["BOOKMARK @10", "!UnavailableError"]


async def test_a_line_without_end_does_not_grow_for_ever(monkeypatch):
    monkeypatch.setattr("proxy_operator.adapters.kube.listwatch._LINE_LIMIT", 1000)
    told = await watched(a_stream(*[b"x" * 400] * 4, hangs=True))
    assert told == ["BOOKMARK @10", "!UnavailableError"]


def test_event_types_are_those_of_the_wire():
    assert {*WatchEventType} == {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}
