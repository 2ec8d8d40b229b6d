import asyncio
from datetime import timedelta

import pytest

from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.events import EventLog
from proxy_operator.controllers.events import EventQueue
from proxy_operator.domain.event import BECAME_HEALTHY, BECAME_UNHEALTHY, RecordedEvent
from proxy_operator.runtime.objects import ObjectKey, key_of
from tests.builders import EPOCH, an_external

PROXY = an_external("p1")
KEY = key_of(PROXY)


class HandClock:
    def __init__(self):
        self.at = EPOCH

    def now(self):
        return self.at

    def monotonic(self):
        return self.at.timestamp()


@pytest.fixture
def clock():
    return HandClock()


async def written(sink: EventQueue) -> None:
    """Run the sink just long enough to write what it holds: stopping it does."""
    task = asyncio.ensure_future(sink.run())  # noqa: TID251 - cancelled two lines on
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_equal_events_are_counted(database: Database, clock: HandClock):
    log = EventLog(database, clock)
    sink = EventQueue(log, clock)
    sink.record(PROXY, BECAME_UNHEALTHY, "refused")
    clock.at += timedelta(minutes=1)
    sink.record(PROXY, BECAME_UNHEALTHY, "refused")
    sink.record(PROXY, BECAME_HEALTHY, "")
    await written(sink)
    clock.at += timedelta(minutes=1)
    sink.record(PROXY, BECAME_UNHEALTHY, "refused")
    await written(sink)
    minute = timedelta(minutes=1)
    assert await log.events_of(KEY) == [
        RecordedEvent(BECAME_HEALTHY, "", 1, EPOCH + minute, EPOCH + minute),
        RecordedEvent(BECAME_UNHEALTHY, "refused", 3, EPOCH, EPOCH + 2 * minute),
    ]


async def test_events_belong_to_one_object(database: Database, clock: HandClock):
    log = EventLog(database, clock)
    sink = EventQueue(log, clock)
    successor = an_external("p1")
    sink.record(PROXY, BECAME_HEALTHY, "of the first")
    sink.record(successor, BECAME_HEALTHY, "of the second")
    sink.record(an_external("p2"), BECAME_HEALTHY, "of another")
    await written(sink)
    assert len(await log.events_of(KEY)) == 2
    (event,) = await log.events_of(KEY, successor.metadata.uid)
    assert event.message == "of the second"
    assert await log.events_of(ObjectKey("other", "p1")) == []


async def test_events_go_after_an_hour(database: Database, clock: HandClock):
    log = EventLog(database, clock)
    sink = EventQueue(log, clock)
    sink.record(PROXY, BECAME_HEALTHY, "old")
    await written(sink)
    clock.at += timedelta(minutes=61)
    sink.record(PROXY, BECAME_HEALTHY, "new")
    await written(sink)
    assert [e.message for e in await log.events_of(KEY)] == ["new"]


async def test_events_are_bounded_in_number(
    database: Database, clock: HandClock, monkeypatch: pytest.MonkeyPatch, caplog
):
    monkeypatch.setattr("proxy_operator.adapters.embedded.events._ROW_LIMIT", 10)
    monkeypatch.setattr("proxy_operator.controllers.events._WAITING_LIMIT", 8)
    log = EventLog(database, clock)
    sink = EventQueue(log, clock)
    for batch in range(2):
        for number in range(9):
            clock.at += timedelta(seconds=1)
            sink.record(PROXY, BECAME_HEALTHY, f"{batch}-{number}")
        await written(sink)
    kept = [e.message for e in await log.events_of(KEY)]
    assert kept == ["0-6", "0-7", *(f"1-{n}" for n in range(8))]
    assert [r.__dict__["dropped"] for r in caplog.records] == [1, 1]


async def test_a_long_or_broken_message_is_no_error(database: Database, clock: HandClock):
    log = EventLog(database, clock)
    sink = EventQueue(log, clock)
    sink.record(PROXY, BECAME_HEALTHY, "x" * 5000)
    sink.record(PROXY, BECAME_HEALTHY, "half \ud800")
    await written(sink)
    assert {e.message for e in await log.events_of(KEY)} == {"x" * 1024, "half ?"}


async def test_events_wait_while_the_store_cannot_be_written(
    data_dir: DataDir, clock: HandClock, caplog
):
    database = Database(data_dir.store_path)
    log = EventLog(database, clock)
    sink = EventQueue(log, clock)
    sink.record(PROXY, BECAME_HEALTHY, "patient")
    await written(sink)
    assert "events could not be written" in caplog.text
    await database.open(create=True)
    sink.record(PROXY, BECAME_HEALTHY, "patient")
    await written(sink)
    (event,) = await log.events_of(KEY)
    assert event.times == 2
    await database.close()


async def test_events_are_written_while_it_runs(database: Database, clock: HandClock):
    log = EventLog(database, clock)
    sink = EventQueue(log, clock)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(sink.run())
        sink.record(PROXY, BECAME_HEALTHY, "soon")
        found: list[RecordedEvent] = []
        while not found:
            await asyncio.sleep(0.02)
            found = await log.events_of(KEY)
        running.cancel()
    assert found[0].message == "soon"
