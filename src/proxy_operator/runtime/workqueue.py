"""The queue between events and workers: keys that need a pass, each at most once.

Semantics are client-go's. A key waits once however often it is added; while a worker has it, an
add makes it wait again only after `done`, so no two workers ever have the same key. Of several
delayed adds of a key the earliest counts. An immediate add leaves a delayed one in place: no
wake-up that somebody asked for is ever lost, at the price of at most one pass too many.

One rule: whoever got a key from `get` calls `done`, whatever happens. Not thread-safe: everything
runs on one loop.
"""

import asyncio
import heapq
from collections import deque
from contextlib import suppress
from datetime import timedelta
from typing import Final

from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.ports import QueueRecorder, Unrecorded
from proxy_operator.runtime.ratelimit import RateLimiter, default_limiter

_STALE_ENTRIES: Final = 64
"""How many more entries than live deadlines the heap may hold before it is rebuilt."""


class ShutDownError(Exception):
    """The queue hands out nothing any more: the worker ends."""


class WorkQueue:
    """Keys that wait for a worker, now or at a later moment."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        limiter: RateLimiter | None = None,
        recorder: QueueRecorder | None = None,
    ) -> None:
        self.name = name
        self._clock = clock
        self._limiter = limiter or default_limiter()
        self._recorder = recorder or Unrecorded()
        self._is_shut_down = False
        self._waiting: dict[ObjectKey, float] = {}  # since when; those in flight included
        self._ready: deque[ObjectKey] = deque()  # the part of them a worker may have
        self._in_flight: dict[ObjectKey, float] = {}  # since when
        self._idle = asyncio.Event()
        self._idle.set()
        self._getters: deque[asyncio.Future[None]] = deque()
        self._delayed: dict[ObjectKey, float] = {}  # deadline
        self._heap: list[tuple[float, ObjectKey]] = []  # entries that differ from it are stale
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._recorder.opened(self)

    def add(self, key: ObjectKey) -> None:
        """Ask for a pass as soon as a worker is free; nothing when the key already waits."""
        if self._is_shut_down or key in self._waiting:
            return
        self._waiting[key] = self._clock.monotonic()
        self._recorder.added(self.name)
        if key not in self._in_flight:
            self._make_ready(key)

    def add_after(self, key: ObjectKey, delay: timedelta) -> None:
        """Ask for a pass `delay` from now, or earlier when one was asked for already."""
        if self._is_shut_down:
            return
        self._recorder.retried(self.name)
        if delay <= timedelta(0):
            self.add(key)
            return
        deadline = self._clock.monotonic() + delay.total_seconds()
        if deadline >= self._delayed.get(key, float("inf")):
            return
        self._delayed[key] = deadline
        heapq.heappush(self._heap, (deadline, key))
        if len(self._heap) > 2 * len(self._delayed) + _STALE_ENTRIES:
            self._heap = [(at, k) for k, at in self._delayed.items()]
            heapq.heapify(self._heap)
        self._arm()

    def add_rate_limited(self, key: ObjectKey) -> None:
        """Ask for another try when the limiter allows it."""
        if not self._is_shut_down:
            self.add_after(key, self._limiter.when(key, self._clock.monotonic()))

    def forget(self, key: ObjectKey) -> None:
        """Reset the backoff of a key; what was asked for already stays asked for."""
        self._limiter.forget(key)

    def num_requeues(self, key: ObjectKey) -> int:
        """Return how often the key was added rate-limited since it was last forgotten."""
        return self._limiter.num_requeues(key)

    async def get(self) -> ObjectKey:
        """Wait for a key and mark it in flight. ShutDownError once the queue is shut down.

        Cancelling the wait takes nothing out of the queue.
        """
        while not self._ready and not self._is_shut_down:
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                with suppress(ValueError):
                    self._getters.remove(getter)
                if self._ready:
                    # We may have been woken for that key: somebody else must have it.
                    self._wake_one()
                raise
        if self._is_shut_down:
            raise ShutDownError(self.name)
        key = self._ready.popleft()
        now = self._clock.monotonic()
        self._recorder.taken(self.name, timedelta(seconds=now - self._waiting.pop(key)))
        self._in_flight[key] = now
        self._idle.clear()
        return key

    def done(self, key: ObjectKey) -> None:
        """End the pass of a key. ValueError when no worker has it."""
        if key not in self._in_flight:
            raise ValueError(f"queue {self.name}: {key} is not in flight")
        worked = self._clock.monotonic() - self._in_flight.pop(key)
        self._recorder.done(self.name, timedelta(seconds=worked))
        if key in self._waiting:
            self._make_ready(key)
        if not self._in_flight:
            self._idle.set()

    def shut_down(self) -> None:
        """Hand out nothing more and ignore every add. What waits is dropped.

        Unlike client-go's, which still hands out what is ready: no pass begins once a stop was
        asked for, and the next start lists every object anyway.
        """
        self._is_shut_down = True
        self._waiting.clear()
        self._ready.clear()
        self._delayed.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
        while self._getters:
            self._wake_one()

    async def drain(self, within: timedelta) -> bool:
        """Shut down and wait for the keys in flight; False when some were not done in time."""
        self.shut_down()
        try:
            async with asyncio.timeout(within.total_seconds()):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def depth(self) -> int:
        """Return how many keys wait, those asked for again while in flight included."""
        return len(self._waiting)

    def unfinished_work(self) -> timedelta:
        """Return the summed age of the keys in flight."""
        now = self._clock.monotonic()
        return timedelta(seconds=sum(now - since for since in self._in_flight.values()))

    def longest_running(self) -> timedelta:
        """Return the age of the key longest in flight."""
        now = self._clock.monotonic()
        return timedelta(seconds=now - min(self._in_flight.values(), default=now))

    def _make_ready(self, key: ObjectKey) -> None:
        self._ready.append(key)
        self._wake_one()

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _arm(self) -> None:
        """Let the timer ring at the earliest deadline."""
        if not self._heap:
            return
        deadline = self._heap[0][0]
        if self._timer is not None:
            if deadline >= self._timer_at:
                return
            self._timer.cancel()
        delay = max(0.0, deadline - self._clock.monotonic())
        self._timer_at = deadline
        self._timer = asyncio.get_running_loop().call_later(delay, self._ring)

    def _ring(self) -> None:
        self._timer = None
        # The timer may be early by the loop's resolution; its own deadline has come all the same.
        now = max(self._timer_at, self._clock.monotonic())
        while self._heap and self._heap[0][0] <= now:
            deadline, key = heapq.heappop(self._heap)
            if self._delayed.get(key) == deadline:
                del self._delayed[key]
                self.add(key)
        self._arm()
