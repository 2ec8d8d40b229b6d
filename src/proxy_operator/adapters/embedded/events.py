"""Events: what happened to a Proxy, kept for an hour, equal ones counted."""

import logging
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.transaction import Transaction
from proxy_operator.controllers.events import Batch
from proxy_operator.domain.event import EventKind, EventType, RecordedEvent
from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.runtime.objects import ObjectKey

logger = logging.getLogger(__name__)

EVENT_TTL: Final = timedelta(hours=1)
"""As long as a kube-apiserver keeps Events (`--event-ttl`)."""
_ROW_LIMIT: Final = 20_000


class EventLog:
    """The table of Events."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def write(self, batch: Batch) -> Batch:
        """Write a batch in one commit, and return it when that cannot be done now."""
        oldest = (self._clock.now() - EVENT_TTL).timestamp()
        try:
            await self._database.write(lambda t: _write(t, batch, oldest))
        except UnavailableError as err:
            logger.warning("events could not be written", extra={"error": str(err)})
            return batch
        return {}

    async def events_of(self, key: ObjectKey, uid: str | None = None) -> list[RecordedEvent]:
        """Return the Events of the last hour, latest last; of one object or of all of that name."""
        return await self._database.read(lambda c: _read(c, key, uid))


def _write(transaction: Transaction, batch: Batch, oldest: float) -> None:
    connection = transaction.connection
    connection.executemany(
        "INSERT INTO events (uid, namespace, name, type, reason, action, message,"
        " count, first_seen_at, last_seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (namespace, name, uid, type, reason, action, message) DO UPDATE SET"
        " count = count + excluded.count, last_seen_at = max(last_seen_at, excluded.last_seen_at)",
        [(h.uid, *h.key, *h.event, h.message, *t) for h, t in batch.items()],
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
