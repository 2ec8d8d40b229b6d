"""The database file: one writer that commits in groups, a few readers, one tail.

SQLite blocks, so statements run in threads; `data_version` is the one exception. Writes that arrive
while a commit is under way share the next: each keeps its own answer, all pay for one sync.
"""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

from proxy_operator.adapters.embedded import migrations
from proxy_operator.adapters.embedded.connection import begin_immediate, connect
from proxy_operator.adapters.embedded.data_dir import make_private
from proxy_operator.adapters.embedded.errors import DataDirError
from proxy_operator.adapters.embedded.transaction import Outcome, Transaction
from proxy_operator.runtime.changes import Change
from proxy_operator.runtime.errors import UnavailableError

R = TypeVar("R")
Operation = Callable[[Transaction], Any]
Query = Callable[[sqlite3.Connection], R]
Listener = Callable[[Sequence[Change]], None]

HISTORY_LIMIT: Final = 10_000
_READERS: Final = 2
# Bounds how long one transaction keeps other processes waiting.
_GROUP_LIMIT: Final = 64


class _Pending(NamedTuple):
    operation: Operation
    answer: asyncio.Future[Any]


class Database:
    """The store's file, open or not. All methods are called on one loop."""

    def __init__(self, path: Path, history_limit: int = HISTORY_LIMIT) -> None:
        self.path = path
        self._history_limit = history_limit
        self._writing = ThreadPoolExecutor(1, "store-writer")
        self._reading = ThreadPoolExecutor(_READERS, "store-reader")
        self._writer: sqlite3.Connection | None = None
        self._tail: sqlite3.Connection | None = None
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._pending: deque[_Pending] = deque()
        self._in_flight: asyncio.Future[Any] | None = None
        self._listeners: list[Listener] = []
        self._is_open = False

    def add_listener(self, listener: Listener) -> None:
        """Call `listener` on the loop with the changes of every commit, before the answers."""
        self._listeners.append(listener)

    async def migrate(self) -> None:
        """Make or upgrade the store. Only for the operator, with its lock held. DataDirError."""
        await self._in_writer(self._migrate)

    async def open(self, *, create: bool) -> None:
        """Open the store, which must have this program's schema; DataDirError says what is wrong.

        With `create` a missing store is made; an older one is never upgraded here.
        """
        await self._in_writer(lambda: self._open(create=create))
        self._is_open = True

    async def close(self) -> None:
        """Finish the writes under way and close the file."""
        while self._in_flight is not None:
            await asyncio.wait({self._in_flight})
        self._is_open = False
        if self._tail is not None:
            self._tail.close()
            self._tail = None
        await self._in_writer(self._close)
        self._writing.shutdown()
        self._reading.shutdown()

    async def cluster_id(self) -> str:
        """Return the UUID that was drawn when the store was made, and tells its instances apart."""
        query = "SELECT cluster_id FROM store"
        (found,) = await self.read(lambda c: c.execute(query).fetchone())
        return str(found)

    async def read(self, query: Query[R]) -> R:
        """Run a query in a thread, at one version of the data. UnavailableError."""
        return await self._in_reader(lambda: self._read(query))

    def data_version(self) -> int | None:
        """Return a number that changes with every commit, whichever process made it.

        None when it cannot be told just now. The one thing done on the loop's thread: it reads
        shared memory and never waits, a few microseconds where a thread would cost a hundred.
        """
        try:
            (version,) = _opened(self._tail).execute("PRAGMA data_version").fetchone()
        except sqlite3.OperationalError:
            return None
        return int(version)

    async def write(self, operation: Callable[[Transaction], R]) -> R:
        """Run an operation in a write transaction; returning means it is on the disk.

        What the operation raises is raised here, and nothing of it was written. UnavailableError:
        nothing was written either. A cancelled caller does not take its operation back.
        """
        if not self._is_open:
            raise UnavailableError("the store is not open")
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._pending.append(_Pending(operation, answer))
        self._start_next()
        return await answer

    def _start_next(self) -> None:
        if self._in_flight is not None or not self._pending:
            return
        size = min(len(self._pending), _GROUP_LIMIT)
        group = [self._pending.popleft() for _ in range(size)]
        loop = asyncio.get_running_loop()
        self._in_flight = loop.run_in_executor(self._writing, self._commit, group)
        self._in_flight.add_done_callback(lambda done: self._finish(group, done))

    def _commit(self, group: list[_Pending]) -> tuple[list[Outcome[Any]], list[Change]]:
        connection = _opened(self._writer)
        try:
            begin_immediate(connection)
            if not migrations.is_current(connection):
                migrations.check_version(connection, self.path)
            transaction = Transaction(connection, self._history_limit)
            outcomes = [transaction.attempt(pending.operation) for pending in group]
            transaction.finish()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return outcomes, transaction.changes

    def _finish(self, group: list[_Pending], done: asyncio.Future[Any]) -> None:
        self._in_flight = None
        try:
            outcomes, changes = done.result()
        except Exception as err:  # noqa: BLE001 - every caller of the group is told
            outcomes, changes = [Outcome(None, _unwritten(self.path, err)) for _ in group], []
        if changes:
            for listener in self._listeners:
                listener(changes)
        for pending, outcome in zip(group, outcomes, strict=True):
            if pending.answer.done():
                continue
            if outcome.error is None:
                pending.answer.set_result(outcome.value)
            else:
                pending.answer.set_exception(outcome.error)
        self._start_next()

    def _migrate(self) -> None:
        make_private(self.path)
        connection = connect(self.path, writes=True)
        try:
            migrations.migrate(connection, self.path)
        finally:
            connection.close()

    def _open(self, *, create: bool) -> None:
        if create:
            make_private(self.path)
        elif not self.path.exists():
            raise DataDirError(_missing(self.path))
        try:
            self._writer = connect(self.path, writes=True)
            self._ensure_schema(self._writer, create=create)
            for _ in range(_READERS):
                self._readers.put(connect(self.path, writes=False))
            self._tail = connect(self.path, writes=False)
            self._tail.execute("PRAGMA busy_timeout = 0")
        except BaseException:
            self._close_connections()
            raise

    def _ensure_schema(self, connection: sqlite3.Connection, *, create: bool) -> None:
        if migrations.is_empty(connection, self.path):
            if not create:
                raise DataDirError(_missing(self.path))
            migrations.migrate(connection, self.path)
        migrations.check_version(connection, self.path)

    def _close(self) -> None:
        self._reading.shutdown()
        self._close_connections()

    def _close_connections(self) -> None:
        while not self._readers.empty():
            self._readers.get().close()
        for connection in (self._tail, self._writer):
            if connection is not None:
                connection.close()
        self._tail = self._writer = None

    def _read(self, query: Query[R]) -> R:
        connection = self._readers.get()
        try:
            connection.execute("BEGIN")
            try:
                return query(connection)
            finally:
                connection.execute("ROLLBACK")
        finally:
            self._readers.put(connection)

    async def _in_reader(self, call: Callable[[], R]) -> R:
        if not self._is_open:
            raise UnavailableError("the store is not open")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._reading, call)
        except sqlite3.Error as err:
            raise UnavailableError(f"store {self.path} cannot be read: {err}") from err

    async def _in_writer(self, call: Callable[[], R]) -> R:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._writing, call)
        except (sqlite3.OperationalError, OSError) as err:
            raise DataDirError(f"store {self.path} cannot be opened: {err}") from err
        except sqlite3.Error as err:
            raise DataDirError(
                f"{self.path} is not a store of proxy-operator ({err}): restore it from a backup,"
                " or choose another --data-dir"
            ) from err


def _opened(connection: sqlite3.Connection | None) -> sqlite3.Connection:
    if connection is None:
        raise UnavailableError("the store is closed")
    return connection


def _unwritten(path: Path, err: Exception) -> Exception:
    """Return a fresh error for one caller of a group that failed as a whole."""
    if not isinstance(err, sqlite3.Error | DataDirError):
        return err
    unwritten = UnavailableError(f"store {path} cannot be written: {err}")
    unwritten.__cause__ = err
    return unwritten


def _missing(path: Path) -> str:
    return (
        f"there is no store at {path}: apply a manifest or start `proxy-operator run --standalone`"
        " with this data directory once, or correct --data-dir"
    )
