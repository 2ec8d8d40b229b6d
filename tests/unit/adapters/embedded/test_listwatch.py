import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from proxy_operator.adapters.embedded import listwatch, records
from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.database import HISTORY_LIMIT, Database
from proxy_operator.adapters.embedded.object_store import SqliteObjectClient
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.errors import ExpiredError, UnavailableError
from proxy_operator.runtime.objects import (
    MetadataPatch,
    ObjectKey,
    Preconditions,
    WatchEventType,
    key_of,
)
from proxy_operator.testing.fake_objects import DecodingAdmission
from proxy_operator.testing.object_client_contract import a_proxy, collect, told


@asynccontextmanager
async def another_client(data_dir: DataDir, history_limit: int = HISTORY_LIMIT):
    other = Database(data_dir.store_path, history_limit)
    await other.open(create=False)
    yield SqliteObjectClient(other, DecodingAdmission(), SystemClock())
    await other.close()


@pytest.fixture
async def stranger(database: Database, data_dir: DataDir):
    """A client with connections of its own, as another process would have."""
    async with another_client(data_dir) as client:
        yield client


@pytest.fixture
async def forgetful(database: Database, data_dir: DataDir):
    """A stranger that keeps little history."""
    async with another_client(data_dir, history_limit=20) as client:
        yield client


async def relabel(client: SqliteObjectClient, proxy: Proxy, times: int) -> None:
    for number in range(times):
        patch = MetadataPatch({"n": str(number)})
        await client.patch_metadata(Proxy, key_of(proxy), Preconditions(proxy.metadata.uid), patch)


async def test_own_and_foreign_writes_come_in_one_order(
    client: SqliteObjectClient, stranger: SqliteObjectClient
):
    async with asyncio.TaskGroup() as tasks:
        watching = [
            tasks.create_task(collect(client.watch(Proxy, "1"), until="end")) for _ in range(3)
        ]
        await asyncio.sleep(0.01)
        for start in range(0, 60, 6):
            await asyncio.gather(
                *(client.create(a_proxy("default", f"own-{start + n}")) for n in range(3)),
                *(stranger.create(a_proxy("default", f"other-{start + n}")) for n in range(3)),
            )
        await stranger.create(a_proxy("default", "end"))
    for watcher in watching:
        versions = [int(e.resource_version) for e in watcher.result()]
        assert versions == [*range(2, 63)]


async def test_watchers_that_join_amid_writes_miss_nothing(
    client: SqliteObjectClient,
    stranger: SqliteObjectClient,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(records, "_CHUNK", 7)
    watching = []
    async with asyncio.TaskGroup() as tasks:

        async def write(writer: SqliteObjectClient, prefix: str) -> None:
            for number in range(60):
                await writer.create(a_proxy("default", f"{prefix}-{number}"))

        writes = [
            tasks.create_task(write(writer, name))
            for name, writer in (("a", client), ("b", client), ("c", stranger))
        ]
        while not all(task.done() for task in writes):
            stream = client.watch(Proxy, "1")
            watching.append(tasks.create_task(collect(stream, until="end")))
            await asyncio.sleep(0.02)
        await stranger.create(a_proxy("default", "end"))
    assert len(watching) > 5
    for watcher in watching:
        assert [int(e.resource_version) for e in watcher.result()] == [*range(2, 183)]


@pytest.mark.parametrize("others", [0, 1])
async def test_a_write_between_reading_and_joining_is_told(
    database: Database,
    client: SqliteObjectClient,
    monkeypatch: pytest.MonkeyPatch,
    others: int,
):
    read = database.read

    async def read_and_be_overtaken(query: Callable[[sqlite3.Connection], Any]) -> Any:
        answer = await read(query)
        monkeypatch.undo()
        await client.create(a_proxy("default", "p1"))
        return answer

    async with asyncio.TaskGroup() as tasks:
        watching = [
            tasks.create_task(collect(client.watch(Proxy, "1"), until="end")) for _ in range(others)
        ]
        await asyncio.sleep(0.1)
        monkeypatch.setattr(database, "read", read_and_be_overtaken)
        watching.append(tasks.create_task(collect(client.watch(Proxy, "1"), until="end")))
        await asyncio.sleep(0.1)
        await client.create(a_proxy("default", "end"))
    for watcher in watching:
        assert told(watcher.result()) == [("ADDED", "p1"), ("ADDED", "end")]


async def test_a_long_history_is_told_to_its_end(
    client: SqliteObjectClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(records, "_CHUNK", 7)
    made = await client.create(a_proxy("default"))
    await relabel(client, made, 50)
    await client.create(a_proxy("default", "end"))
    events = await collect(client.watch(Proxy, "1"), until="end")
    assert [int(e.resource_version) for e in events] == [*range(2, 54)]


async def test_a_foreign_write_alone_is_seen(
    client: SqliteObjectClient, stranger: SqliteObjectClient
):
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(collect(client.watch(Proxy, "1"), until="end"))
        await asyncio.sleep(0.15)
        await stranger.create(a_proxy("default", "end"))
    assert told(watching.result()) == [("ADDED", "end")]


async def test_watchers_go_on_while_others_stand_still(
    client: SqliteObjectClient, stranger: SqliteObjectClient
):
    still = [client.watch(Proxy, "1") for _ in range(4)]
    async with asyncio.TaskGroup() as tasks:
        first = [tasks.create_task(anext(stream)) for stream in still[:2]]
        await asyncio.sleep(0.01)
        watching = tasks.create_task(collect(client.watch(Proxy, "1"), until="end"))
        await asyncio.sleep(0.01)
        first += [tasks.create_task(anext(stream)) for stream in still[2:]]
        await asyncio.sleep(0.01)
        await stranger.create(a_proxy("default", "p1"))
        await asyncio.wait(first)
        await asyncio.sleep(0.1)
        await stranger.create(a_proxy("default", "end"))
    assert told(watching.result()) == [("ADDED", "p1"), ("ADDED", "end")]
    for stream in still:
        await stream.aclose()


async def test_a_running_watch_expires_when_the_history_left_it_behind(
    client: SqliteObjectClient, forgetful: SqliteObjectClient, monkeypatch: pytest.MonkeyPatch
):
    made = await client.create(a_proxy("default"))
    monkeypatch.setattr(listwatch, "_POLL_SECONDS", 0.5)
    async with asyncio.TaskGroup() as tasks:
        watching = [
            tasks.create_task(expiry_of(client, made.metadata.resource_version)) for _ in range(2)
        ]
        await asyncio.sleep(0.1)
        await relabel(forgetful, made, 60)
    assert all(w.result() for w in watching)
    # The feed itself goes on.
    listed = await client.list(Proxy)
    await forgetful.create(a_proxy("default", "end"))
    events = await collect(client.watch(Proxy, listed.resource_version), until="end")
    assert told(events) == [("ADDED", "end")]


async def expiry_of(client: SqliteObjectClient, version: str) -> bool:
    with pytest.raises(ExpiredError):
        await collect(client.watch(Proxy, version), until="never")
    return True


@pytest.mark.parametrize("version", ["", "none", "-1", "99", "1e3"])
async def test_a_version_this_store_never_had(client: SqliteObjectClient, version: str):
    assert await expiry_of(client, version)


async def test_a_watcher_that_is_told_nothing_gets_bookmarks(
    client: SqliteObjectClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(listwatch, "_BOOKMARK_AFTER", 10)
    made = await client.create(a_proxy("default"))
    async with aclosing(client.watch(Secret, "1")) as stream, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(anext(stream))
        await asyncio.sleep(0.01)
        await relabel(client, made, 25)
        event = await first
    assert event.type is WatchEventType.BOOKMARK
    assert event.object is None
    assert int(event.resource_version) >= 11


async def test_a_watcher_that_does_not_keep_up_is_sent_away(
    client: SqliteObjectClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(listwatch, "_BACKLOG_LIMIT", 10)
    made = await client.create(a_proxy("default"))
    stream = client.watch(Proxy, "1")
    async with aclosing(stream):
        await anext(stream)
        task = asyncio.ensure_future(anext(stream))  # noqa: TID251 - awaited below
        await asyncio.sleep(0.05)
        await relabel(client, made, 1)
        await task
        await relabel(client, made, 30)
        rest = [await anext(stream) for _ in range(11)]
        assert told(rest) == [("MODIFIED", "p1")] * 11
        with pytest.raises(ExpiredError, match="keep up"):
            await anext(stream)


async def test_watches_end_with_the_store(data_dir: DataDir):
    database = Database(data_dir.store_path)
    await database.open(create=True)
    client = SqliteObjectClient(database, DecodingAdmission(), SystemClock())

    async def ended() -> bool:
        with pytest.raises(UnavailableError):
            await collect(client.watch(Proxy, "1"), until="never")
        return True

    async with asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(ended()) for _ in range(3)]
        await asyncio.sleep(0.1)
        await database.close()
    assert all(w.result() for w in watching)


async def test_nobody_watching_leaves_nothing_behind(client: SqliteObjectClient):
    for _ in range(3):
        stream = client.watch(Proxy, "1")
        await client.create(a_proxy("default"))
        await anext(stream)
        await stream.aclose()
        await client.delete(Proxy, ObjectKey("default", "p1"))
        break
    assert not client._feed._watchers
    assert client._feed._poller is None
