"""The only place for free tasks: each has a name, an owner and an answer to its crash."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from enum import Enum, auto
from typing import Final

from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.ratelimit import jittered

logger = logging.getLogger(__name__)

_RESTART_BASE: Final = timedelta(seconds=1)
_RESTART_CAP: Final = timedelta(minutes=1)

_CANCEL_PATIENCE: Final = 5.0
"""Seconds a cancelled task may take to end before it is given up."""


class Policy(Enum):
    """What to do when a task crashes."""

    RESTART = auto()
    """Log it and run it again, with backoff: for loops that the rest can do without for a while."""
    FATAL = auto()
    """Nothing works without it: `wait` raises the error."""


class Supervisor:
    """Named tasks. A name is also the key of a "task per key": starting it twice is one task."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ended = asyncio.Event()
        self._error: Exception | None = None

    def start(
        self, name: str, run: Callable[[], Awaitable[None]], policy: Policy = Policy.RESTART
    ) -> bool:
        """Run `run` as a task of its own; False, and nothing done, when that name runs already.

        A run that returns is over.
        """
        if name in self._tasks:
            return False
        task = asyncio.create_task(self._keep(name, run, policy), name=name)
        self._tasks[name] = task
        task.add_done_callback(lambda done: self._forget(name, done))
        return True

    def is_running(self, name: str) -> bool:
        """Tell whether the task runs or waits for its restart."""
        return name in self._tasks

    async def cancel(self, *names: str) -> None:
        """Cancel those tasks at the same time and wait for their end; unknown names are ignored."""
        tasks = [task for name in names if (task := self._tasks.get(name)) is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=_CANCEL_PATIENCE)
            for task in stuck:
                logger.error("a task ignores its cancellation", extra={"task": task.get_name()})

    async def stop(self) -> None:
        """Cancel whatever still runs."""
        await self.cancel(*self._tasks)

    def end_wait(self) -> None:
        """Let `wait` return. Safe in a signal handler of the loop."""
        self._ended.set()

    async def wait(self) -> None:
        """Wait for `end_wait`, or raise the error of the first FATAL task that crashed."""
        await self._ended.wait()
        if self._error is not None:
            raise self._error

    async def _keep(self, name: str, run: Callable[[], Awaitable[None]], policy: Policy) -> None:
        crashes = 0
        while True:
            started = self._clock.monotonic()
            try:
                await run()
            except Exception as err:
                if _is_cancelled():
                    logger.exception("a task failed to stop cleanly", extra={"task": name})
                    return
                if policy is Policy.FATAL:
                    self._fail(name, err)
                    return
                if self._clock.monotonic() - started > _RESTART_CAP.total_seconds():
                    crashes = 0
                wait = jittered(crashes, _RESTART_BASE, _RESTART_CAP)
                crashes += 1
                logger.exception(
                    "a task crashed and will be restarted",
                    extra={"task": name, "crashes": crashes, "seconds": wait.total_seconds()},
                )
                await asyncio.sleep(wait.total_seconds())
            else:
                return

    def _fail(self, name: str, err: Exception) -> None:
        logger.error("a task failed that nothing works without", extra={"task": name})
        if self._error is None:
            self._error = err
        self._ended.set()

    def _forget(self, name: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is task:
            del self._tasks[name]


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
