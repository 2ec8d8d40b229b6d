import asyncio
import logging

import pytest

from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.supervisor import Policy, Supervisor
from tests.builders import EPOCH

pytestmark = pytest.mark.looptime(start=0)


class Loop:
    """Something to run: crashes `crashes` times after `lasting` seconds, then runs on."""

    def __init__(self, crashes: int = 0, lasting: float = 0.0) -> None:
        self.crashes = crashes
        self.lasting = lasting
        self.starts: list[float] = []
        self.ends = 0

    async def run(self) -> None:
        self.starts.append(asyncio.get_running_loop().time())
        try:
            await asyncio.sleep(self.lasting)
            if len(self.starts) <= self.crashes:
                raise RuntimeError("crash")
            await asyncio.sleep(1e9)
        finally:
            self.ends += 1


def a_supervisor() -> Supervisor:
    return Supervisor(LoopClock(EPOCH))


async def test_crashed_task_is_restarted_ever_more_slowly(caplog):
    supervisor, loop = a_supervisor(), Loop(crashes=12)
    supervisor.start("loop", loop.run)
    await asyncio.sleep(3600)
    assert len(loop.starts) == 13
    assert 0.5 <= loop.starts[1] <= 1
    assert 30 <= loop.starts[12] - loop.starts[11] <= 60
    assert [r.levelno for r in caplog.records] == [logging.ERROR] * 12
    assert all(r.exc_info for r in caplog.records)
    await supervisor.stop()


async def test_task_that_ran_well_for_long_starts_its_backoff_anew():
    supervisor, loop = a_supervisor(), Loop(crashes=100, lasting=120)
    supervisor.start("loop", loop.run)
    await asyncio.sleep(1000)
    await supervisor.stop()
    assert len(loop.starts) == 9


async def test_crash_of_a_fatal_task_reaches_whoever_waits():
    supervisor = a_supervisor()
    supervisor.start("server", Loop(crashes=1, lasting=5).run, Policy.FATAL)
    with pytest.raises(RuntimeError, match="crash"):
        await supervisor.wait()
    await asyncio.sleep(1)
    assert not supervisor.is_running("server")


async def test_wait_ends_when_asked():
    supervisor = a_supervisor()
    asyncio.get_running_loop().call_later(5, supervisor.end_wait)
    await supervisor.wait()
    assert asyncio.get_running_loop().time() == pytest.approx(5)


async def test_name_runs_once_at_a_time():
    supervisor, one, other = a_supervisor(), Loop(), Loop()
    assert supervisor.start("key", one.run)
    assert not supervisor.start("key", other.run)
    await asyncio.sleep(1)
    await supervisor.cancel("key", "unknown")
    assert (one.ends, other.starts) == (1, [])
    assert supervisor.start("key", other.run)
    await asyncio.sleep(1)
    assert supervisor.is_running("key")
    await supervisor.stop()
    assert other.ends == 1


async def test_task_that_returns_is_over():
    async def run() -> None:
        await asyncio.sleep(1)

    supervisor = a_supervisor()
    supervisor.start("once", run, Policy.FATAL)
    await asyncio.sleep(2)
    assert not supervisor.is_running("once")


async def test_task_waiting_for_its_restart_can_be_cancelled():
    supervisor, loop = a_supervisor(), Loop(crashes=1)
    supervisor.start("loop", loop.run)
    await asyncio.sleep(0.1)
    await supervisor.stop()
    await asyncio.sleep(100)
    assert len(loop.starts) == 1


async def test_error_while_stopping_is_logged_and_restarts_nothing(caplog):
    starts = []

    async def run() -> None:
        starts.append(1)
        try:
            await asyncio.sleep(1e9)
        finally:
            raise RuntimeError("cannot close")

    supervisor = a_supervisor()
    supervisor.start("loop", run)
    await asyncio.sleep(1)
    await supervisor.stop()
    assert not supervisor.is_running("loop")
    await asyncio.sleep(100)
    assert len(starts) == 1
    assert [r.message for r in caplog.records] == ["a task failed to stop cleanly"]


async def test_task_deaf_to_cancellation_does_not_hold_up_the_stop(caplog):
    is_deaf = True

    async def run() -> None:
        while is_deaf:
            try:
                await asyncio.sleep(1e9)
            except asyncio.CancelledError:
                continue

    supervisor, loop = a_supervisor(), Loop()
    supervisor.start("deaf", run)
    supervisor.start("loop", loop.run)
    await asyncio.sleep(1)
    await supervisor.stop()
    assert asyncio.get_running_loop().time() == pytest.approx(6)
    assert loop.ends == 1
    assert [r.__dict__["task"] for r in caplog.records] == ["deaf"]
    is_deaf = False
    await supervisor.stop()
