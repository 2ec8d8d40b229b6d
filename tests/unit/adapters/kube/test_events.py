"""Events as the API server keeps them: equal ones are one series."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from proxy_operator.adapters.kube.events import EventApi
from proxy_operator.controllers.events import Happening, Tally
from proxy_operator.domain.event import BECAME_UNHEALTHY, EventKind, EventType, RecordedEvent
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.runtime.objects import ObjectKey
from tests.unit.adapters.kube.scripted import Answer, ScriptedApi, served, status

KEY = ObjectKey("team", "p1")
REFUSED = Happening("uid-1", KEY, BECAME_UNHEALTHY, "refused")
AT = datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=UTC)
MADE = Answer(201, {})


def a_tally(times: int = 1, *, after: timedelta = timedelta(0), lasting: float = 0) -> Tally:
    first = (AT + after).timestamp()
    return Tally(times, first, first + lasting)


async def write(api: ScriptedApi, *tallies: Tally, happening: Happening = REFUSED) -> list[Any]:
    """Write one batch after the other, and return what was left of each."""
    async with served(api) as client:
        events = EventApi(client, "operator-1")
        return [await events.write({happening: tally}) for tally in tallies]


async def test_an_event_says_what_happened_to_whom():
    api = ScriptedApi(MADE)
    assert await write(api, a_tally()) == [{}]
    [asked] = api.asked
    assert (asked.method, asked.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/team/events")
    document = asked.document
    assert document.pop("metadata")["name"].startswith("p1.")
    assert document == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-01-02T03:04:05.600000Z",
        "type": "Warning",
        "reason": "BecameUnhealthy",
        "action": "Probe",
        "note": "refused",
        "reportingController": "crawl.example.com/proxy-operator",
        "reportingInstance": "operator-1",
        "regarding": {
            "apiVersion": "crawl.example.com/v1alpha1",
            "kind": "Proxy",
            "namespace": "team",
            "name": "p1",
            "uid": "uid-1",
        },
    }


async def test_equal_happenings_grow_into_a_series():
    api = ScriptedApi(MADE)
    await write(api, a_tally(), a_tally(2, after=timedelta(minutes=5), lasting=30))
    made, grown = api.asked
    assert grown.method == "PATCH"
    assert grown.path.endswith("/events/" + made.document["metadata"]["name"])
    assert grown.document == {
        "series": {"count": 3, "lastObservedTime": "2026-01-02T03:09:35.600000Z"}
    }


async def test_several_at_once_begin_as_a_series():
    api = ScriptedApi(MADE)
    await write(api, a_tally(4, lasting=1))
    series = api.asked[0].document["series"]
    assert series == {"count": 4, "lastObservedTime": "2026-01-02T03:04:06.600000Z"}


@pytest.mark.parametrize("gap", [timedelta(minutes=7), timedelta(hours=3)])
async def test_after_a_long_silence_it_is_a_new_event(gap):
    api = ScriptedApi(MADE)
    await write(api, a_tally(), a_tally(after=gap))
    assert [a.method for a in api.asked] == ["POST", "POST"]


async def test_a_series_whose_event_has_expired_begins_anew():
    api = ScriptedApi(MADE, Answer(404, status(404, "NotFound")), MADE)
    assert await write(api, a_tally(), a_tally(2, after=timedelta(minutes=1))) == [{}, {}]
    assert [a.method for a in api.asked] == ["POST", "PATCH", "POST"]
    assert api.asked[2].document["series"]["count"] == 2


async def test_what_the_server_cannot_take_now_is_given_back():
    api = ScriptedApi(Answer(500, status(500, "InternalError")))
    assert await write(api, a_tally()) == [{REFUSED: a_tally()}]


@pytest.mark.parametrize("code", [403, 404, 422])
async def test_what_the_server_refuses_is_given_up(code, caplog):
    api = ScriptedApi(Answer(code, status(code, message="no")))
    assert await write(api, a_tally()) == [{}]
    assert "refused" in caplog.text


@pytest.mark.parametrize("name", ["n" * 253, "a" * 235 + ".b" + "c" * 10])
async def test_a_long_name_makes_a_valid_one(name):
    api = ScriptedApi(MADE)
    await write(api, a_tally(), happening=REFUSED._replace(key=ObjectKey("team", name)))
    made = api.asked[0].document["metadata"]["name"]
    assert len(made) <= 253
    assert ".." not in made
    assert "-." not in made


async def test_events_of_an_object_by_time():
    ours = {
        "type": "Warning",
        "reason": "BecameUnhealthy",
        "action": "Probe",
        "note": "refused",
        "eventTime": "2026-01-02T03:04:05.600000Z",
        "series": {"count": 3, "lastObservedTime": "2026-01-02T03:09:35.600000Z"},
    }
    old_style = {
        "type": "Normal",
        "reason": "Noticed",
        "note": "by another tool",
        "eventTime": None,
        "deprecatedCount": 2,
        "deprecatedFirstTimestamp": "2026-01-02T03:00:00Z",
        "deprecatedLastTimestamp": "2026-01-02T03:01:00Z",
    }
    api = ScriptedApi(Answer(document={"items": [ours, old_style]}))
    async with served(api) as client:
        found = await EventApi(client, "me").events_of(KEY, "uid-1")
    at = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)
    assert found == [
        RecordedEvent(
            EventKind(EventType.NORMAL, "Noticed", ""),
            "by another tool",
            2,
            at,
            at + timedelta(minutes=1),
        ),
        RecordedEvent(BECAME_UNHEALTHY, "refused", 3, AT, AT + timedelta(minutes=5, seconds=30)),
    ]
    assert api.asked[0].query == {
        "fieldSelector": "regarding.kind=Proxy,regarding.name=p1,regarding.uid=uid-1"
    }


async def test_events_that_cannot_be_read():
    async with served(ScriptedApi(Answer(document={"items": 3}))) as client:
        with pytest.raises(UnavailableError):
            await EventApi(client, "me").events_of(KEY)
