"""Events on their way from the controllers to the home that keeps them.

The one rule: telling people never holds up or fails the work. What cannot be written for long is
dropped, counted and said.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from proxy_operator.domain.event import EventKind
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.objects import ObjectKey, key_of

logger = logging.getLogger(__name__)

MESSAGE_LIMIT: Final = 1024
"""The most that the `note` of an `events.k8s.io/v1` Event may hold."""
_WAITING_LIMIT: Final = 2_000
_PAUSE_SECONDS: Final = 0.2
_RETRY_SECONDS: Final = 2.0


class Happening(NamedTuple):
    """What happened to which object; equal ones are counted."""

    uid: str
    key: ObjectKey
    event: EventKind
    message: str


class Tally(NamedTuple):
    """How often, and when: POSIX seconds."""

    times: int
    first: float
    last: float

    def plus(self, other: "Tally") -> "Tally":
        """Return both together."""
        first, last = min(self.first, other.first), max(self.last, other.last)
        return Tally(self.times + other.times, first, last)


Batch = Mapping[Happening, Tally]


class EventWriter(Protocol):
    """Where Events are kept."""

    async def write(self, batch: Batch) -> Batch:
        """Write what can be written, and return the rest, to be offered again. Never raises."""


class EventQueue:
    """Takes Events from the controllers and has them written in the background."""

    name: Final = "events"

    def __init__(self, writer: EventWriter, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._waiting: dict[Happening, Tally] = {}
        self._woken = asyncio.Event()
        self._dropped = 0

    def record(self, proxy: Proxy, event: EventKind, message: str) -> None:
        """Note an Event; it is written within a second. Never blocks, never raises."""
        text = message.encode(errors="replace").decode()[:MESSAGE_LIMIT]
        now = self._clock.now().timestamp()
        self._note(Happening(proxy.metadata.uid, key_of(proxy), event, text), Tally(1, now, now))
        self._woken.set()

    async def run(self) -> None:
        """Have written what is noted until cancelled; then the rest."""
        try:
            while True:
                await self._woken.wait()
                # Bursts are one batch.
                await asyncio.sleep(_PAUSE_SECONDS)
                self._woken.clear()
                if not await self._flush():
                    self._woken.set()
                    await asyncio.sleep(_RETRY_SECONDS)
        finally:
            await self._flush()

    async def _flush(self) -> bool:
        waiting, self._waiting = self._waiting, {}
        dropped, self._dropped = self._dropped, 0
        if dropped:
            logger.warning("too many events at once", extra={"dropped": dropped})
        if not waiting:
            return True
        rest = await self._writer.write(waiting)
        for happening, tally in rest.items():
            self._note(happening, tally)
        return not rest

    def _note(self, happening: Happening, tally: Tally) -> None:
        known = self._waiting.get(happening)
        if known is not None:
            self._waiting[happening] = known.plus(tally)
        elif len(self._waiting) < _WAITING_LIMIT:
            self._waiting[happening] = tally
        else:
            self._dropped += tally.times
