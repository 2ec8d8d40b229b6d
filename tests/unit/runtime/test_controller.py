import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.controller import Controller
from proxy_operator.runtime.errors import ConflictError, UnavailableError
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.ports import Outcome, Unrecorded
from proxy_operator.runtime.ratelimit import ExponentialBackoff
from proxy_operator.runtime.reconciler import Result, TerminalError
from proxy_operator.runtime.workqueue import WorkQueue
from tests.builders import EPOCH

pytestmark = pytest.mark.looptime(start=0)

A = ObjectKey("default", "a")
AGAIN_IN_5 = Result(requeue_after=timedelta(seconds=5))


class Reconciler:
    """Ends its passes as told: with each of `ends` in turn, then with `Result()`."""

    def __init__(self, *ends: Result | Exception, lasting: float = 0.0) -> None:
        self.ends = [*ends]
        self.lasting = lasting
        self.passes: list[Any] = []
        self.running: list[ObjectKey] = []
        self.most_running = 0

    async def reconcile(self, key: ObjectKey) -> Result:
        assert key not in self.running
        self.running.append(key)
        self.most_running = max(self.most_running, len(self.running))
        self.passes.append(pytest.approx(asyncio.get_running_loop().time()))
        try:
            if self.lasting:
                await asyncio.sleep(self.lasting)
            end = self.ends.pop(0) if self.ends else Result()
            if isinstance(end, Exception):
                raise end
            return end
        finally:
            self.running.remove(key)


class Working:
    def __init__(self, reconciler: Reconciler, **arguments: Any) -> None:
        clock = LoopClock(EPOCH)
        self.reconciler = reconciler
        self.queue = WorkQueue("proxy", clock, ExponentialBackoff(base=timedelta(seconds=1)))
        self.controller = Controller(reconciler, self.queue, clock=clock, **arguments)
        self.run: asyncio.Task[None]


@asynccontextmanager
async def working(
    *ends: Result | Exception, lasting: float = 0.0, **arguments: Any
) -> AsyncIterator[Working]:
    work = Working(Reconciler(*ends, lasting=lasting), **arguments)
    async with asyncio.TaskGroup() as group:
        work.run = group.create_task(work.controller.run())
        yield work
        work.run.cancel()
    assert work.reconciler.running == []


async def test_error_is_retried_with_backoff_until_it_is_gone():
    async with working(RuntimeError("x"), RuntimeError("x"), RuntimeError("x")) as work:
        work.queue.add(A)
        await asyncio.sleep(6.9)
        assert work.queue.num_requeues(A) == 3
        await asyncio.sleep(60)
        assert work.reconciler.passes == [0, 1, 3, 7]
        assert work.queue.num_requeues(A) == 0


async def test_terminal_error_waits_for_an_event():
    async with working(RuntimeError("x"), TerminalError("no use")) as work:
        work.queue.add(A)
        await asyncio.sleep(3600)
        assert work.reconciler.passes == [0, 1]
        assert work.queue.num_requeues(A) == 0
        work.queue.add(A)
        await asyncio.sleep(1)
        assert work.reconciler.passes == [0, 1, 3600]


async def test_requeue_after_comes_in_time_and_ends_the_backoff():
    async with working(RuntimeError("x"), AGAIN_IN_5, RuntimeError("x")) as work:
        work.queue.add(A)
        await asyncio.sleep(60)
        assert work.reconciler.passes == [0, 1, 6, 7]


async def test_plain_result_waits_for_an_event():
    async with working() as work:
        work.queue.add(A)
        await asyncio.sleep(3600)
        assert work.reconciler.passes == [0]


@pytest.mark.parametrize(
    ("error", "level", "has_traceback"),
    [
        (ConflictError("changed"), logging.DEBUG, False),
        (UnavailableError("down"), logging.WARNING, False),
        (TimeoutError("slow"), logging.WARNING, False),
        (TerminalError("no use"), logging.ERROR, False),
        (KeyError("bug"), logging.ERROR, True),
    ],
)
async def test_log_is_as_loud_as_the_error_is_unexpected(caplog, error, level, has_traceback):
    caplog.set_level(logging.DEBUG, logger="proxy_operator")
    async with working(error, expected=(TimeoutError,)) as work:
        work.queue.add(A)
        await asyncio.sleep(0.5)
    (record,) = caplog.records
    assert (record.levelno, record.exc_info is not None) == (level, has_traceback)
    assert record.__dict__["key"] == "default/a"
    assert record.__dict__["error"] == f"{type(error).__name__}: {error}"


async def test_workers_share_the_keys_but_never_one_key():
    async with working(lasting=1, workers=3) as work:
        for number in range(7):
            work.queue.add(ObjectKey("default", str(number)))
        await asyncio.sleep(0.5)
        work.queue.add(ObjectKey("default", "0"))
        await asyncio.sleep(10)
        assert work.reconciler.most_running == 3
        assert work.reconciler.passes == [0, 0, 0, 1, 1, 1, 2, 2]


async def test_backlog_of_passes_that_never_wait_lets_the_loop_breathe():
    async with working() as work:
        for number in range(1000):
            work.queue.add(ObjectKey("default", str(number)))
        for _ in range(5):
            await asyncio.sleep(0)
        assert 0 < len(work.reconciler.passes) < 100


async def test_drain_begins_no_pass_and_lets_the_running_ones_finish():
    async with working(lasting=5, workers=1) as work:
        work.queue.add(A)
        work.queue.add(ObjectKey("default", "b"))
        await asyncio.sleep(1)
        await work.controller.drain(timedelta(seconds=10))
        assert asyncio.get_running_loop().time() == pytest.approx(5)
        await work.run
        assert work.reconciler.passes == [0]


async def test_drain_gives_up_in_time_and_cancelling_cuts_passes_off(caplog):
    async with working(lasting=3600) as work:
        work.queue.add(A)
        await asyncio.sleep(1)
        await work.controller.drain(timedelta(seconds=10))
        assert asyncio.get_running_loop().time() == pytest.approx(11)
        assert work.reconciler.running == [A]
    assert [r.message for r in caplog.records] == ["passes did not end in time and are cut off"]


class Tally(Unrecorded):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def sized(self, controller: str, workers: int) -> None:
        self.seen.append((controller, workers))

    def started(self, controller: str) -> None:
        self.seen.append("started")

    def finished(self, controller: str, outcome: Outcome | None, took: timedelta) -> None:
        self.seen.append((outcome, took.total_seconds()))


async def test_recorder_learns_of_every_outcome():
    tally = Tally()
    ends = (KeyError("bug"), TerminalError("no use"), AGAIN_IN_5)
    async with working(*ends, lasting=2, recorder=tally) as work:
        work.queue.add(A)
        await asyncio.sleep(6)
        work.queue.add(A)
        await asyncio.sleep(10)
        work.queue.add(A)
        await asyncio.sleep(1)
    assert tally.seen[0] == ("proxy", 3)
    assert tally.seen[1::2] == ["started"] * 5
    assert tally.seen[2::2] == [
        (Outcome.ERROR, 2.0),
        (Outcome.TERMINAL_ERROR, 2.0),
        (Outcome.REQUEUE_AFTER, 2.0),
        (Outcome.SUCCESS, 2.0),
        (None, 1.0),
    ]
