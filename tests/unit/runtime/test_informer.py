import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.errors import ExpiredError, UnavailableError
from proxy_operator.runtime.informer import Informer
from proxy_operator.runtime.objects import ObjectKey, key_of
from proxy_operator.runtime.store import StoreEvent
from tests.builders import EPOCH
from tests.unit.runtime.script import (
    HANG,
    Script,
    a_list,
    added,
    an_object,
    bookmark,
    deleted,
    modified,
)

pytestmark = pytest.mark.looptime(start=0)

A = ObjectKey("default", "a")
DOWN = UnavailableError("the store is down")


class Watched:
    """An informer at work, and what its handlers were told as `+uid@version`, `~…`, `-…`."""

    def __init__(self, script: Script, **restrictions: Any) -> None:
        self.script = script
        self.informer = Informer(script, Proxy, clock=LoopClock(EPOCH), **restrictions)
        self.told: list[str] = []
        self.informer.store.add_handler(self._note)

    def _note(self, event: StoreEvent[Proxy]) -> None:
        obj = event.new or event.old
        assert obj is not None
        assert self.informer.store.get(key_of(obj)) is event.new
        sign = "+" if event.old is None else "-" if event.new is None else "~"
        echo = " echo" if event.is_echo else ""
        self.told.append(f"{sign}{obj.metadata.uid}@{obj.metadata.resource_version}{echo}")

    @property
    def stored(self) -> set[str]:
        return {
            f"{o.metadata.uid}@{o.metadata.resource_version}" for o in self.informer.store.list()
        }

    @property
    def calls(self) -> list[str]:
        return [call for _, call in self.script.calls]


@asynccontextmanager
async def watching(
    *lists: Any, streams: tuple[Any, ...] = (), **restrictions: Any
) -> AsyncIterator[Watched]:
    """An informer that has played its script for a virtual second."""
    watched = Watched(Script(*lists, streams=streams), **restrictions)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(watched.informer.run())
        await asyncio.sleep(1)
        yield watched
        running.cancel()
    assert watched.script.open_streams == 0


async def test_lists_then_watches_from_the_version_of_the_list():
    stream = (added(an_object("b", 11)), modified(an_object("a", 12)), deleted(an_object("b"), 13))
    async with watching(a_list(10, an_object("a", 3)), streams=(stream,)) as watched:
        assert watched.calls[:2] == ["list", "watch 10"]
        assert watched.told == ["+uid-a@3", "+uid-b@11", "~uid-a@12", "-uid-b@11"]
        assert watched.stored == {"uid-a@12"}


async def test_has_synced_only_after_the_first_list_is_in_the_store():
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    async with watching(answer) as watched:
        assert not watched.informer.has_synced
        answer.set_result(a_list(10, an_object("a")))
        await watched.informer.wait_for_sync()
        assert watched.informer.has_synced
        assert watched.stored == {"uid-a@1"}


async def test_watch_goes_on_where_the_stream_ended():
    streams = ((10.0, added(an_object("b", 11))), (10.0, bookmark(20)), (HANG,))
    async with watching(a_list(10), streams=streams) as watched:
        await asyncio.sleep(60)
        assert watched.script.calls == [
            (0, "list"),
            (0, "watch 10"),
            (pytest.approx(10), "watch 11"),
            (pytest.approx(20), "watch 20"),
        ]


async def test_stream_that_ends_at_once_is_retried_ever_more_slowly():
    async with watching(a_list(10), streams=((),) * 1000) as watched:
        await asyncio.sleep(600)
        moments = [at for at, call in watched.script.calls if call == "watch 10"]
        waits = [after - before for before, after in pairwise(moments)]
        assert 0.25 <= waits[0] <= 0.5
        assert all(15 <= wait <= 30 for wait in waits[8:])
        assert watched.calls.count("list") == 1
        assert watched.informer.lost_at is not None


async def test_stream_that_ends_soon_but_brings_news_is_retried_soon():
    streams = tuple((added(an_object(f"o{i}", 11 + i)),) for i in range(20))
    async with watching(a_list(10), streams=streams) as watched:
        await asyncio.sleep(10)
        assert len(watched.stored) == 20
        assert watched.informer.lost_at is None


async def test_outage_is_logged_once_and_so_is_its_end(caplog):
    caplog.set_level(logging.INFO)
    async with watching(DOWN, DOWN, DOWN, DOWN, a_list(10, an_object("a"))) as watched:
        assert watched.informer.lost_at == 0
        await asyncio.sleep(60)
        assert watched.calls.count("list") == 5
        assert watched.informer.lost_at is None
        assert watched.stored == {"uid-a@1"}
    assert [record.message for record in caplog.records] == [
        "lost the watch, retrying",
        "the watch works again",
    ]


async def test_lost_watch_goes_on_without_a_new_list_and_is_found_alive_by_an_event():
    streams = ((DOWN,), (DOWN,), (7.0, added(an_object("b", 11)), HANG))
    async with watching(a_list(10), streams=streams) as watched:
        await asyncio.sleep(5)
        assert watched.informer.lost_at == 0
        await asyncio.sleep(10)
        assert watched.informer.lost_at is None
        assert watched.calls == ["list", "watch 10", "watch 10", "watch 10"]


async def test_quiet_watch_is_taken_as_alive_after_a_while():
    async with watching(a_list(10), streams=((DOWN,), (HANG,))) as watched:
        await asyncio.sleep(20)
        assert watched.informer.lost_at == 0
        await asyncio.sleep(20)
        assert watched.informer.lost_at is None


@pytest.mark.parametrize("before", [(), (bookmark(15),), (60.0,)])
async def test_expired_history_is_answered_by_a_list(before):
    streams = ((*before, ExpiredError("410")), (HANG,))
    lists = (a_list(10, an_object("a"), an_object("b")), a_list(20, an_object("b")))
    async with watching(*lists, streams=streams) as watched:
        await asyncio.sleep(62)
        assert watched.calls[-2:] == ["list", "watch 20"]
        assert watched.told == ["+uid-a@1", "+uid-b@1", "-uid-a@1"]


async def test_watch_that_always_expires_does_not_list_in_a_tight_loop():
    async with watching(a_list(10), streams=((ExpiredError("410"),),) * 1000) as watched:
        await asyncio.sleep(300)
        assert watched.calls.count("list") < 25


async def test_successor_found_by_the_list_is_a_removal_and_an_addition():
    lists = (a_list(10, an_object("a", 5)), a_list(20, an_object("a", 15, uid="next")))
    async with watching(*lists, streams=((ExpiredError("410"),),)) as watched:
        await asyncio.sleep(5)
        assert watched.told == ["+uid-a@5", "-uid-a@5", "+next@15"]


async def test_successor_found_by_the_watch_is_a_removal_and_an_addition():
    stream = (added(an_object("a", 15, uid="next")), deleted(an_object("a", 5), 14))
    async with watching(a_list(10, an_object("a", 5)), streams=(stream,)) as watched:
        assert watched.told == ["+uid-a@5", "-uid-a@5", "+next@15"]
        assert watched.stored == {"next@15"}


async def test_own_write_is_in_the_store_at_once_and_its_event_is_not_delivered():
    stream = (5.0, modified(an_object("a", 11)), modified(an_object("a", 12)), HANG)
    async with watching(a_list(10, an_object("a")), streams=(stream,)) as watched:
        watched.informer.observe(an_object("a", 11), is_echo=True)
        assert watched.stored == {"uid-a@11"}
        await asyncio.sleep(10)
        assert watched.told == ["+uid-a@1", "~uid-a@11 echo", "~uid-a@12"]


async def test_late_events_never_take_the_store_back_behind_an_own_write():
    stream = (5.0, modified(an_object("a", 9)), modified(an_object("a", 11)), HANG)
    async with watching(a_list(8, an_object("a")), streams=(stream,)) as watched:
        watched.informer.observe(an_object("a", 12))
        await asyncio.sleep(10)
        assert watched.told == ["+uid-a@1", "~uid-a@12"]


async def test_versions_compare_as_numbers():
    stream = (modified(an_object("a", 10)), HANG)
    async with watching(a_list(9, an_object("a", 9)), streams=(stream,)) as watched:
        assert watched.stored == {"uid-a@10"}


async def test_late_events_do_not_resurrect_what_an_own_write_removed():
    stream = (5.0, modified(an_object("a", 11)), deleted(an_object("a", 11), 12), HANG)
    async with watching(a_list(10, an_object("a")), streams=(stream,)) as watched:
        watched.informer.observe_deleted(A, "uid-a")
        await asyncio.sleep(10)
        assert watched.told == ["+uid-a@1", "-uid-a@1"]


async def test_late_reply_does_not_resurrect_what_the_watch_removed():
    stream = (modified(an_object("a", 11)), deleted(an_object("a", 11), 12), HANG)
    async with watching(a_list(10, an_object("a")), streams=(stream,)) as watched:
        watched.informer.observe(an_object("a", 11))
        assert watched.stored == set()


async def test_late_reply_does_not_resurrect_what_a_list_found_gone():
    lists = (a_list(10, an_object("a")), a_list(20))
    async with watching(*lists, streams=((ExpiredError("410"),),)) as watched:
        await asyncio.sleep(5)
        watched.informer.observe(an_object("a", 15))
        assert watched.stored == set()


async def test_removal_of_the_predecessor_leaves_the_successor_alone():
    async with watching(a_list(10, an_object("a", 5, uid="next"))) as watched:
        watched.informer.observe_deleted(A, "uid-a")
        assert watched.stored == {"next@5"}


async def test_own_create_during_a_list_that_does_not_know_it_survives():
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    async with watching(a_list(10), answer, streams=((ExpiredError("410"),),)) as watched:
        assert watched.calls.count("list") == 2
        watched.informer.observe(an_object("a", 21))
        answer.set_result(a_list(20))
        await asyncio.sleep(1)
        assert watched.stored == {"uid-a@21"}


async def test_own_write_during_a_list_that_saw_the_object_gone_afterwards_does_not_survive():
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    lists = (a_list(10, an_object("a")), answer)
    async with watching(*lists, streams=((ExpiredError("410"),),)) as watched:
        assert watched.calls.count("list") == 2
        watched.informer.observe(an_object("a", 18))
        answer.set_result(a_list(20))
        await asyncio.sleep(1)
        assert watched.stored == set()


async def test_own_writes_during_a_list_are_newer_than_what_it_returns():
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    objects = (an_object("a"), an_object("b"), an_object("c"))
    async with watching(a_list(10, *objects), answer, streams=((ExpiredError(""),),)) as watched:
        assert watched.calls.count("list") == 2
        watched.informer.observe(an_object("a", 21))
        watched.informer.observe_deleted(ObjectKey("default", "b"), "uid-b")
        answer.set_result(a_list(20, *objects))
        await asyncio.sleep(1)
        assert watched.stored == {"uid-a@21", "uid-c@1"}


async def test_own_successor_created_during_a_list_survives_its_listed_predecessor():
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    lists = (a_list(10, an_object("a")), answer)
    async with watching(*lists, streams=((ExpiredError("410"),),)) as watched:
        assert watched.calls.count("list") == 2
        watched.informer.observe(an_object("a", 22, uid="next"))
        answer.set_result(a_list(20, an_object("a", 15)))
        await asyncio.sleep(1)
        assert watched.stored == {"next@22"}


async def test_list_is_the_truth_even_when_versions_went_backwards():
    """As after a restore of the store from a backup."""
    lists = (a_list(100, an_object("a", 90), an_object("b", 95)), a_list(20, an_object("a", 15)))
    async with watching(*lists, streams=((ExpiredError("410"),),)) as watched:
        await asyncio.sleep(5)
        assert watched.stored == {"uid-a@15"}


async def test_object_that_stops_matching_its_labels_leaves_and_may_come_back():
    stream = (deleted(an_object("a", 10), 11), 5.0, added(an_object("a", 12)), HANG)
    async with watching(a_list(10, an_object("a")), streams=(stream,)) as watched:
        assert watched.stored == set()
        await asyncio.sleep(5)
        assert watched.stored == {"uid-a@12"}


async def test_late_removal_leaves_an_own_write_that_made_the_object_match_again():
    stream = (5.0, deleted(an_object("a", 10), 11), HANG)
    async with watching(a_list(10, an_object("a")), streams=(stream,)) as watched:
        watched.informer.observe(an_object("a", 12))
        await asyncio.sleep(10)
        assert watched.stored == {"uid-a@12"}


async def test_own_write_that_does_not_match_the_restrictions_is_a_removal():
    one = an_object("a", 5, labels={"kept": "true"})
    async with watching(a_list(10, one), labels={"kept": "true"}, namespace="default") as watched:
        watched.informer.observe(an_object("b", 11, labels={"kept": "true"}, namespace="other"))
        watched.informer.observe(an_object("c", 12))
        assert watched.stored == {"uid-a@5"}
        watched.informer.observe(an_object("a", 13))
        assert watched.told == ["+uid-a@5", "-uid-a@5"]


async def test_graves_are_bounded():
    async with watching(a_list(10)) as watched:
        for number in range(10_100):
            watched.informer.observe_deleted(A, f"uid-{number}")
        assert len(watched.informer._graves) == 10_000


async def test_run_can_be_started_again_and_goes_on():
    watched = Watched(Script(a_list(10, an_object("a")), streams=((HANG,), (bookmark(11), HANG))))
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watched.informer.run(), 5)
    assert watched.calls == ["list", "watch 10", "watch 10"]
    assert watched.script.open_streams == 0


async def test_a_late_reply_does_not_bring_back_what_a_list_no_longer_shows():
    """Written, removed by somebody else, listed; only then the reply of the write comes."""
    async with watching(a_list(4)) as watched:
        watched.informer.observe(an_object("a", 2))
        assert watched.told == []
        watched.informer.observe(an_object("b", 5))
        assert watched.told == ["+uid-b@5"]


async def test_what_cannot_be_read_keeps_its_last_readable_state():
    first = a_list(10, an_object("a", 3), an_object("b", 4))
    second = a_list(20)._replace(unreadable=("uid-a",))
    async with watching(first, second, streams=((ExpiredError("gone"),),)) as watched:
        assert watched.stored == {"uid-a@3"}
