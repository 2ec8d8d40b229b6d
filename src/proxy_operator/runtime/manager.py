"""Starts the parts of an operator in the right order and stops them in the reverse one.

First the caches; when they have synced, what needs no leadership; when elected, what does. A
part never sees an empty cache, and nothing acts that does not lead.
"""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple, Protocol, runtime_checkable

from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.errors import ObjectError
from proxy_operator.runtime.leader_election import AlwaysLeader, Elector, LeadershipLostError
from proxy_operator.runtime.supervisor import Policy, Supervisor

logger = logging.getLogger(__name__)

_LOST_PATIENCE: Final = 60.0
"""Seconds a cache may be without its watch before the process calls itself unready."""

_RELEASE_PATIENCE: Final = 5.0
"""Seconds that giving leadership up may take."""

_DRAIN_SLACK: Final = timedelta(seconds=1)
"""What a drain gets over its time to notice that it is over."""


_NOT_RELEASED: Final = "leadership was not given up, a successor will have to wait"

_START: Final = "start"
_LEADERSHIP: Final = "leadership"


class Runnable(Protocol):
    """A part that runs until it is cancelled; returning earlier means that it is finished."""

    @property
    def name(self) -> str:
        """Unique within the manager."""

    async def run(self) -> None: ...


@runtime_checkable
class Drainable(Runnable, Protocol):
    """A runnable that wants to finish what it has begun before it is cancelled."""

    async def drain(self, within: timedelta) -> None:
        """Take on nothing new; return when the rest is finished, or when the time is over.

        It may still be cancelled during it. `run` is cancelled afterwards if it has not returned.
        """


class Cache(Runnable, Protocol):
    """What the manager asks of an informer."""

    @property
    def has_synced(self) -> bool: ...

    @property
    def lost_at(self) -> float | None: ...

    async def wait_for_sync(self) -> None: ...


class _Entry(NamedTuple):
    runnable: Runnable
    policy: Policy


class Manager:
    """The parts of one process."""

    def __init__(
        self,
        clock: Clock,
        elector: Elector | None = None,
        grace: timedelta = timedelta(seconds=10),
    ) -> None:
        """`grace` bounds the drain of the elected runnables, and then that of the others."""
        self._clock = clock
        self._elector = elector or AlwaysLeader()
        self._grace = grace
        self._supervisor = Supervisor(clock)
        self._caches: list[Cache] = []
        self._first: list[_Entry] = []
        self._everywhere: list[_Entry] = []
        self._elected: list[_Entry] = []
        self._names = {_START, _LEADERSHIP}
        self._is_leader = False
        self._is_stopping = False

    def add_cache(self, cache: Cache) -> None:
        """Add an informer, before `run`."""
        self._claim(f"cache {cache.name}")
        self._caches.append(cache)

    def add(self, runnable: Runnable, *, elected: bool, policy: Policy = Policy.RESTART) -> None:
        """Add a part, before `run`; an elected one runs only while this process leads."""
        self._claim(runnable.name)
        (self._elected if elected else self._everywhere).append(_Entry(runnable, policy))

    def add_first(self, runnable: Runnable, *, policy: Policy = Policy.RESTART) -> None:
        """Add a part that needs no cache, before `run`: it starts first and stops last."""
        self._claim(runnable.name)
        self._first.append(_Entry(runnable, policy))

    @property
    def is_leader(self) -> bool:
        return self._is_leader

    def unready_reasons(self) -> Sequence[str]:
        """Return why this process should get no traffic; none when it is ready."""
        if self._is_stopping:
            return ["stopping"]
        reasons = []
        for cache in self._caches:
            if not cache.has_synced:
                reasons.append(f"the cache of {cache.name} has not synced")
            elif cache.lost_at is not None:
                seconds = self._clock.monotonic() - cache.lost_at
                if seconds > _LOST_PATIENCE:
                    reasons.append(f"the watch of {cache.name} has been lost for {seconds:.0f} s")
        return reasons

    def is_ready(self) -> bool:
        """Tell whether nothing speaks against sending traffic here."""
        return not self.unready_reasons()

    def request_stop(self) -> None:
        """Let `run` stop everything and return. Safe in a signal handler of the loop."""
        self._supervisor.end_wait()

    async def run(self) -> None:
        """Run all parts until `request_stop`, then stop them in reverse order.

        Raises the error of a FATAL part that crashed, or LeadershipLostError, after the stop.
        Cancelling is a request to stop too; cancelling again cuts the stop off.
        """
        is_fenced = False
        try:
            self._supervisor.start(_START, self._start, Policy.FATAL)
            await self._supervisor.wait()
        except LeadershipLostError:
            is_fenced = True
            self._is_leader = False
            raise
        finally:
            await self._stop(is_fenced=is_fenced)

    def _claim(self, name: str) -> None:
        if name in self._names:
            raise ValueError(f"there is a runnable named {name!r} already")
        self._names.add(name)

    async def _start(self) -> None:
        self._start_all(self._first)
        for cache in self._caches:
            self._supervisor.start(f"cache {cache.name}", cache.run)
        for cache in self._caches:
            await cache.wait_for_sync()
        logger.info("caches have synced", extra={"caches": [c.name for c in self._caches]})
        self._start_all(self._everywhere)
        await self._elector.acquire()
        self._is_leader = True
        logger.info("leading")
        self._supervisor.start(_LEADERSHIP, self._hold, Policy.FATAL)
        self._start_all(self._elected)

    async def _hold(self) -> None:
        await self._elector.hold()
        raise LeadershipLostError("the elector stopped holding leadership")

    def _start_all(self, entries: Sequence[_Entry]) -> None:
        for runnable, policy in entries:
            self._supervisor.start(runnable.name, runnable.run, policy)

    async def _stop(self, *, is_fenced: bool) -> None:
        self._is_stopping = True
        logger.info("stopping")
        try:
            await self._supervisor.cancel(_START)
            await self._stop_all(self._elected, timedelta(0) if is_fenced else self._grace)
            await self._supervisor.cancel(_LEADERSHIP)
            await self._release()
            await self._stop_all(self._everywhere, self._grace)
            await self._stop_all(self._first, self._grace)
        finally:
            await self._supervisor.stop()
        logger.info("stopped")

    async def _stop_all(self, entries: Sequence[_Entry], grace: timedelta) -> None:
        """Drain together, since a part late to finish must not use up another one's time."""
        running = [r for r, _ in entries if self._supervisor.is_running(r.name)]
        if grace:
            await asyncio.gather(*(_drain(r, grace) for r in running if isinstance(r, Drainable)))
        await self._supervisor.cancel(*(r.name for r in running))

    async def _release(self) -> None:
        self._is_leader = False
        try:
            async with asyncio.timeout(_RELEASE_PATIENCE):
                await self._elector.release()
        except (ObjectError, TimeoutError) as err:
            logger.warning(_NOT_RELEASED, extra={"error": str(err) or "no answer in time"})
        except Exception:
            logger.exception(_NOT_RELEASED)


async def _drain(runnable: Drainable, grace: timedelta) -> None:
    try:
        async with asyncio.timeout((grace + _DRAIN_SLACK).total_seconds()):
            await runnable.drain(grace)
    except TimeoutError:
        logger.warning("a drain overran its time", extra={"runnable": runnable.name})
    except Exception:
        logger.exception("a drain failed", extra={"runnable": runnable.name})
