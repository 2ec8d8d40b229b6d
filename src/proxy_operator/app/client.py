"""The standalone home as the commands see it: the store of a data directory.

Commands read and write beside a running operator; nothing of the operator is started here.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.events import EventLog
from proxy_operator.adapters.embedded.object_store import SqliteObjectClient
from proxy_operator.adapters.embedded.operator_lock import is_operator_running
from proxy_operator.domain.event import RecordedEvent
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.objects import ObjectClient, ObjectKey


class EventReader(Protocol):
    """Tells what happened to an object."""

    async def events_of(self, key: ObjectKey, uid: str | None = None) -> list[RecordedEvent]:
        """Return the Events still kept, latest last; without `uid`, of all of that name."""


@dataclass(frozen=True, kw_only=True)
class Home:
    """Where objects live."""

    client: ObjectClient
    events: EventReader
    admission: Admission
    is_operator_running: Callable[[], bool]


@asynccontextmanager
async def open_home(data_dir: Path, *, create: bool = False) -> AsyncIterator[Home]:
    """Open the store of a data directory; `create` makes a missing one. DataDirError."""
    directory = DataDir(data_dir)
    directory.prepare(create=create)
    database = Database(directory.store_path)
    await database.open(create=create)
    try:
        admission, clock = Admission(), SystemClock()
        yield Home(
            client=SqliteObjectClient(database, admission, clock),
            events=EventLog(database, clock),
            admission=admission,
            is_operator_running=lambda: is_operator_running(directory),
        )
    finally:
        await database.close()
