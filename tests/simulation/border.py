"""What every call of a simulated process passes on its way out, and what is noted there.

A process that has died never gets an answer again and sends nothing any more.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import TypeVar

from proxy_operator.adapters.providers.gcp.session import Document, Reply
from proxy_operator.provisioning.errors import FencedError, TransientProviderError
from proxy_operator.runtime.clock import LoopClock
from proxy_operator.testing.faults import Gate
from tests.builders import EPOCH
from tests.gcp_worlds import InProcessSession

R = TypeVar("R")


class SkewedClock(LoopClock):
    """A machine's clock: its wall jumps, its monotonic reading does not."""

    def __init__(self) -> None:
        super().__init__(EPOCH)
        self.skew = timedelta()

    def now(self) -> datetime:
        return super().now() + self.skew


class Line:
    """The way to the store: how bad it is at the moment, for every process of a cluster."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.loss = 0.0
        """The share of calls that get no answer; half of those take effect."""


class LifeGate(Gate):
    """The gate of one process: it may be told to die at a call."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line
        self._fuse = -1
        self._dies_after = False

    def die_at(self, calls: int, *, after: bool) -> None:
        """Die at that call from now, before it is sent or after it took effect."""
        self._fuse, self._dies_after = calls, after

    async def pass_through(
        self, name: str, call: Callable[[], Awaitable[R]], error: Exception
    ) -> R:
        """Make the call, unless the process dies or the line to the store breaks."""
        if self.cut.is_set():
            await self._die()
        is_last = self._fuse == 0
        self._fuse -= 1
        if is_last and not self._dies_after:
            await self._die()
        line = self._line
        is_lost = False
        if not name.startswith("cloud"):
            # A store that answers at once lets two processes write against each other for ever.
            await asyncio.sleep(line.random.uniform(0.01, 0.1))
            is_lost = line.random.random() < line.loss
        if is_lost and line.random.random() < 0.5:
            await asyncio.sleep(line.random.uniform(0, 10))
            raise error
        answer = await call()
        if is_last or self.cut.is_set():
            await self._die()
        if is_lost:
            await asyncio.sleep(line.random.uniform(0, 10))
            raise error
        return answer


class GatedSession:
    """A session to the cloud behind a gate; `watch` sees every request that is sent."""

    def __init__(
        self,
        inner: InProcessSession,
        gate: Gate,
        watch: Callable[[str, str, Mapping[str, str], Document | None], None],
    ) -> None:
        self._inner = inner
        self._gate = gate
        self._watch = watch

    async def send(
        self, method: str, path: str, query: Mapping[str, str], body: Document | None = None
    ) -> Reply:
        def call() -> Awaitable[Reply]:
            self._watch(method, path, query, body)
            return self._inner.send(method, path, query, body)

        return await self._gate.pass_through(
            f"cloud {method}", call, TransientProviderError("Compute Engine gave no answer")
        )

    async def close(self) -> None:
        """Nothing to let go of."""


class Leadership:
    """The fence of one process: open until it is closed."""

    def __init__(self) -> None:
        self.is_open = True

    def check(self) -> None:
        """FencedError once another process leads."""
        if not self.is_open:
            raise FencedError("this process no longer leads: nothing was changed")
