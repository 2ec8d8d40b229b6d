"""Events: what happened to a Proxy, kept for an hour, equal ones counted.

Telling people must never hold up or fail the work: `record` only notes, `run` writes.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.transaction import Transaction
from proxy_operator.domain.event import EventKind, EventType, RecordedEvent
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.runtime.objects import ObjectKey, key_of

logger = logging.getLogger(__name__)

EVENT_TTL: Final = timedelta(hours=1)
"""As long as a kube-apiserver keeps Events (`--event-ttl`)."""
_ROW_LIMIT: Final = 20_000
_WAITING_LIMIT: Final = 2_000
_MESSAGE_LIMIT: Final = 1024
"""The most that the `note` of an `events.k8s.io/v1` Event may hold."""
_PAUSE_SECONDS: Final = 0.2
_RETRY_SECONDS: Final = 2.0


class _Happening(NamedTuple):
    uid: str
    key: ObjectKey
    event: EventKind
    message: str


class _Tally(NamedTuple):
    times: int
    first: float
    last: float

    def plus(self, other: "_Tally") -> "_Tally":
        first, last = min(self.first, other.first), max(self.last, other.last)
        return _Tally(self.times + other.times, first, last)


class EventSink:
    """Takes Events from the controllers and writes them in the background."""

    name: Final = "events"

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._waiting: dict[_Happening, _Tally] = {}
        self._woken = asyncio.Event()
        self._dropped = 0

    def record(self, proxy: Proxy, event: EventKind, message: str) -> None:
        """Note an Event; it is written within a second. Never blocks, never raises."""
        text = message.encode(errors="replace").decode()[:_MESSAGE_LIMIT]
        now = self._clock.now().timestamp()
        happening = _Happening(proxy.metadata.uid, key_of(proxy), event, text)
        self._note(happening, _Tally(1, now, now))
        self._woken.set()

    async def run(self) -> None:
        """Write what is noted until cancelled; then write the rest."""
        try:
            while True:
                await self._woken.wait()
                # Bursts are one write.
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
        oldest = (self._clock.now() - EVENT_TTL).timestamp()
        try:
            await self._database.write(lambda t: _write(t, waiting, oldest))
        except UnavailableError as err:
            logger.warning("events could not be written", extra={"error": str(err)})
            for happening, tally in waiting.items():
                self._note(happening, tally)
            return False
        return True

    def _note(self, happening: _Happening, tally: _Tally) -> None:
        known = self._waiting.get(happening)
        if known is not None:
            self._waiting[happening] = known.plus(tally)
        elif len(self._waiting) < _WAITING_LIMIT:
            self._waiting[happening] = tally
        else:
            self._dropped += tally.times


class EventLog:
    """Reads the Events of an object."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def events_of(self, key: ObjectKey, uid: str | None = None) -> list[RecordedEvent]:
        """Return the Events of the last hour, latest last; of one object or of all of that name."""
        return await self._database.read(lambda c: _read(c, key, uid))


def _write(transaction: Transaction, waiting: Mapping[_Happening, _Tally], oldest: float) -> None:
    connection = transaction.connection
    connection.executemany(
        "INSERT INTO events (uid, namespace, name, type, reason, action, message,"
        " count, first_seen_at, last_seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (namespace, name, uid, type, reason, action, message) DO UPDATE SET"
        " count = count + excluded.count, last_seen_at = max(last_seen_at, excluded.last_seen_at)",
        [(h.uid, *h.key, *h.event, h.message, *t) for h, t in waiting.items()],
    )
    connection.execute("DELETE FROM events WHERE last_seen_at < ?", (oldest,))
    connection.execute(
        "DELETE FROM events WHERE rowid IN"
        " (SELECT rowid FROM events ORDER BY last_seen_at DESC LIMIT -1 OFFSET ?)",
        (_ROW_LIMIT,),
    )


def _read(connection: sqlite3.Connection, key: ObjectKey, uid: str | None) -> list[RecordedEvent]:
    query = (
        "SELECT type, reason, action, message, count, first_seen_at, last_seen_at FROM events"
        " WHERE namespace = ? AND name = ?"
    )
    where: tuple[str, ...] = key
    if uid is not None:
        query += " AND uid = ?"
        where = (*key, uid)
    return [*_events(connection.execute(f"{query} ORDER BY last_seen_at, first_seen_at", where))]


def _events(
    rows: Iterable[tuple[str, str, str, str, int, float, float]],
) -> Iterable[RecordedEvent]:
    for type_, reason, action, message, count, first, last in rows:
        yield RecordedEvent(
            EventKind(EventType(type_), reason, action),
            message,
            count,
            datetime.fromtimestamp(first, UTC),
            datetime.fromtimestamp(last, UTC),
        )
