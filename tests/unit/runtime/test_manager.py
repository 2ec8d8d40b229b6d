import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.runtime.informer import Informer
from proxy_operator.runtime.leader_election import LeadershipLostError
from proxy_operator.runtime.manager import Manager
from proxy_operator.runtime.supervisor import Policy
from tests.builders import EPOCH
from tests.unit.runtime.script import Script, a_list

pytestmark = pytest.mark.looptime(start=0)


class Diary:
    """What happened, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, line: str) -> None:
        self.lines.append(line)


class Cache:
    def __init__(self, name: str, diary: Diary, sync_after: float = 1.0) -> None:
        self.name = name
        self.diary = diary
        self.sync_after = sync_after
        self.synced = asyncio.Event()
        self.lost_at: float | None = None

    @property
    def has_synced(self) -> bool:
        return self.synced.is_set()

    async def wait_for_sync(self) -> None:
        await self.synced.wait()

    async def run(self) -> None:
        await asyncio.sleep(self.sync_after)
        self.synced.set()
        self.diary.note(f"{self.name} synced")
        try:
            await asyncio.sleep(1e9)
        finally:
            self.diary.note(f"{self.name} ended")


class Part:
    def __init__(self, name: str, diary: Diary, fails_after: float = 1e9) -> None:
        self.name = name
        self.diary = diary
        self.fails_after = fails_after

    async def run(self) -> None:
        self.diary.note(f"{self.name} runs")
        try:
            await asyncio.sleep(self.fails_after)
            raise OSError("port taken")
        finally:
            self.diary.note(f"{self.name} ended")


class Draining(Part):
    """Needs `seconds` to finish."""

    def __init__(self, name: str, diary: Diary, seconds: float) -> None:
        super().__init__(name, diary)
        self.seconds = seconds

    async def drain(self, within: timedelta) -> None:
        self.diary.note(f"{self.name} drains")
        await asyncio.sleep(min(self.seconds, within.total_seconds()))
        self.diary.note(f"{self.name} drained")


class Election:
    """Won after `after` seconds and lost `term` seconds later."""

    def __init__(self, diary: Diary, after: float = 1.0, term: float = 1e9) -> None:
        self.diary = diary
        self.after = after
        self.term = term

    async def acquire(self) -> None:
        await asyncio.sleep(self.after)
        self.diary.note("elected")

    async def hold(self) -> None:
        await asyncio.sleep(self.term)
        raise LeadershipLostError("renewal failed")

    async def release(self) -> None:
        self.diary.note("released")


def a_manager(diary: Diary, election: Election | None = None) -> Manager:
    manager = Manager(LoopClock(EPOCH), election or Election(diary))
    manager.add_cache(Cache("proxies", diary))
    manager.add_cache(Cache("secrets", diary, sync_after=2))
    manager.add(Draining("api", diary, 1), elected=False)
    manager.add(Draining("controller", diary, 3), elected=True)
    manager.add(Part("gc", diary), elected=True)
    return manager


@asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[asyncio.Task[None]]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run())
        yield task
        manager.request_stop()


def now() -> float:
    return asyncio.get_running_loop().time()


STARTED = ["proxies synced", "secrets synced", "api runs", "elected", "controller runs", "gc runs"]


async def test_starts_caches_then_everything_then_the_elected_and_stops_in_reverse():
    diary = Diary()
    manager = a_manager(diary)
    async with running(manager) as run:
        await asyncio.sleep(10)
        assert diary.lines == STARTED
        assert manager.is_leader
        manager.request_stop()
        await run
    stopped = diary.lines[len(STARTED) :]
    assert stopped[:2] == ["controller drains", "controller drained"]
    assert set(stopped[2:4]) == {"controller ended", "gc ended"}
    assert stopped[4:8] == ["released", "api drains", "api drained", "api ended"]
    assert set(stopped[8:]) == {"proxies ended", "secrets ended"}
    assert not manager.is_leader


async def test_what_needs_no_cache_starts_before_them_and_stops_last():
    diary = Diary()
    manager = Manager(LoopClock(EPOCH))
    manager.add_cache(Cache("proxies", diary, sync_after=5))
    manager.add_first(Part("health", diary))
    async with running(manager) as run:
        await asyncio.sleep(1)
        assert diary.lines == ["health runs"]
        await asyncio.sleep(10)
        manager.request_stop()
        await run
    assert diary.lines.index("health ended") < diary.lines.index("proxies ended")
    assert diary.lines[:2] == ["health runs", "proxies synced"]


async def test_cancelling_is_a_request_to_stop():
    diary = Diary()
    manager = a_manager(diary)
    async with running(manager) as run:
        await asyncio.sleep(10)
        run.cancel()
    assert "controller drained" in diary.lines
    assert "released" in diary.lines
    assert diary.lines[-1] in {"proxies ended", "secrets ended"}


async def test_stop_before_the_caches_have_synced_starts_nothing():
    diary = Diary()
    manager = a_manager(diary)
    async with running(manager):
        await asyncio.sleep(1.5)
    assert diary.lines == ["proxies synced", "released", "proxies ended"]


async def test_without_being_elected_the_elected_never_run():
    diary = Diary()
    manager = a_manager(diary, Election(diary, after=1e6))
    async with running(manager):
        await asyncio.sleep(3600)
        assert diary.lines == STARTED[:3]
        assert not manager.is_leader
        assert manager.is_ready()
    assert "controller drains" not in diary.lines


async def test_election_won_while_stopping_starts_nothing():
    diary = Diary()
    manager = a_manager(diary, Election(diary, after=8.5))
    async with running(manager):
        await asyncio.sleep(10)
    assert "api drained" in diary.lines
    assert "elected" not in diary.lines
    assert "controller runs" not in diary.lines


async def test_process_that_lost_its_lead_does_not_call_itself_leader():
    class Watching(Part):
        async def run(self) -> None:
            try:
                await super().run()
            finally:
                self.diary.note(f"leader: {manager.is_leader}")

    diary = Diary()
    manager = a_manager(diary, Election(diary, term=10))
    manager.add(Watching("watching", diary), elected=True)
    with pytest.raises(LeadershipLostError):
        await manager.run()
    assert "leader: False" in diary.lines


async def test_lost_leadership_cuts_the_elected_off_at_once_and_is_raised():
    diary = Diary()
    manager = a_manager(diary, Election(diary, term=10))
    with pytest.raises(LeadershipLostError):
        await manager.run()
    assert "controller drains" not in diary.lines
    assert {"controller ended", "gc ended"} <= set(diary.lines)
    assert diary.lines.index("controller ended") < diary.lines.index("api drains")


async def test_crash_of_a_fatal_part_stops_everything_and_is_raised():
    diary = Diary()
    manager = a_manager(diary)
    manager.add(Part("metrics", diary, fails_after=5), elected=False, policy=Policy.FATAL)
    with pytest.raises(OSError, match="port taken"):
        await manager.run()
    assert "controller drained" in diary.lines
    assert "released" in diary.lines


async def test_crash_of_another_part_restarts_it():
    diary = Diary()
    manager = a_manager(diary)
    manager.add(Part("sweeper", diary, fails_after=5), elected=False)
    async with running(manager):
        await asyncio.sleep(20)
        assert diary.lines.count("sweeper runs") == 3
        assert manager.is_ready()


async def test_part_late_to_finish_gets_its_grace_and_takes_nobody_elses():
    diary = Diary()
    manager = a_manager(diary)
    manager.add(Draining("stuck", diary, 1e9), elected=True)
    async with running(manager) as run:
        await asyncio.sleep(10)
        manager.request_stop()
        await run
    assert now() == pytest.approx(10 + 10 + 1)
    assert "api drained" in diary.lines


async def test_drain_that_fails_or_ignores_its_time_does_not_hold_up_the_stop(caplog):
    class Failing(Draining):
        async def drain(self, within: timedelta) -> None:
            raise RuntimeError("cannot drain")

    class Deaf(Draining):
        async def drain(self, within: timedelta) -> None:
            await asyncio.sleep(1e9)

    diary = Diary()
    manager = a_manager(diary)
    manager.add(Failing("failing", diary, 0), elected=False)
    manager.add(Deaf("deaf", diary, 0), elected=False)
    async with running(manager) as run:
        await asyncio.sleep(10)
        manager.request_stop()
        await run
    assert now() == pytest.approx(10 + 3 + 11)
    assert {"failing ended", "deaf ended", "api drained"} <= set(diary.lines)
    assert {r.message for r in caplog.records} == {"a drain failed", "a drain overran its time"}


@pytest.mark.parametrize(
    ("failure", "seconds", "said"),
    [
        (None, 5, "no answer in time"),
        (UnavailableError("the API server cannot be reached"), 0, "the API server cannot be"),
    ],
    ids=["silence", "refusal"],
)
async def test_failing_release_is_said_and_does_not_hold_up_the_stop(
    caplog, failure: Exception | None, seconds: float, said: str
):
    class Failing(Election):
        async def release(self) -> None:
            if failure is not None:
                raise failure
            await asyncio.sleep(1e9)

    diary = Diary()
    manager = a_manager(diary, Failing(diary))
    async with running(manager):
        await asyncio.sleep(10)
    assert now() == pytest.approx(10 + 3 + seconds + 1)
    (record,) = caplog.records
    assert record.exc_info is None
    assert said in record.error


async def test_readiness_says_what_is_missing():
    diary = Diary()
    manager = Manager(LoopClock(EPOCH))
    cache = Cache("proxies", diary, sync_after=5)
    manager.add_cache(cache)
    assert not manager.is_ready()
    async with running(manager) as run:
        await asyncio.sleep(1)
        assert manager.unready_reasons() == ["the cache of proxies has not synced"]
        await asyncio.sleep(9)
        assert manager.is_ready()
        cache.lost_at = now()
        await asyncio.sleep(59)
        assert manager.is_ready()
        await asyncio.sleep(2)
        assert manager.unready_reasons() == ["the watch of proxies has been lost for 61 s"]
        cache.lost_at = None
        assert manager.is_ready()
        manager.request_stop()
        await run
        assert manager.unready_reasons() == ["stopping"]


async def test_names_are_unique():
    diary = Diary()
    manager = a_manager(diary)
    for name in ("api", "gc", "leadership", "cache proxies"):
        with pytest.raises(ValueError, match=name):
            manager.add(Part(name, diary), elected=False)


async def test_real_informers_serve_as_caches():
    clock = LoopClock(EPOCH)
    manager = Manager(clock)
    script = Script(UnavailableError("down"), a_list(10))
    manager.add_cache(Informer(script, Proxy, clock=clock))
    async with running(manager):
        await asyncio.sleep(0.1)
        assert manager.unready_reasons() == ["the cache of Proxy has not synced"]
        await asyncio.sleep(5)
        assert manager.is_ready()
    assert script.open_streams == 0
