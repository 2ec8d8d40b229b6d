"""The store's schema, as numbered steps, and who may take them.

A step that was released is never edited: write the next one. Creating a store from nothing is
not migrating, so anyone who may write may do it.
"""

import sqlite3
import uuid
from pathlib import Path
from typing import Final

from proxy_operator.adapters.embedded.connection import begin_immediate
from proxy_operator.adapters.embedded.errors import DataDirError

APPLICATION_ID: Final = 0x70786F70
"""Marks the file as ours (`PRAGMA application_id`): "pxop"."""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """CREATE TABLE store (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            cluster_id TEXT NOT NULL,
            resource_version INTEGER NOT NULL
        )""",
        """CREATE TABLE objects (
            kind TEXT NOT NULL,
            namespace TEXT NOT NULL,
            name TEXT NOT NULL,
            document TEXT NOT NULL,
            UNIQUE (kind, namespace, name)
        )""",
        """CREATE TABLE history (
            resource_version INTEGER PRIMARY KEY,
            kind TEXT NOT NULL,
            type TEXT NOT NULL,
            document TEXT NOT NULL,
            previous TEXT
        )""",
        """CREATE TABLE events (
            uid TEXT NOT NULL,
            namespace TEXT NOT NULL,
            name TEXT NOT NULL,
            type TEXT NOT NULL,
            reason TEXT NOT NULL,
            action TEXT NOT NULL,
            message TEXT NOT NULL,
            count INTEGER NOT NULL,
            first_seen_at REAL NOT NULL,
            last_seen_at REAL NOT NULL,
            UNIQUE (namespace, name, uid, type, reason, action, message)
        )""",
        "CREATE INDEX events_by_age ON events (last_seen_at)",
    ),
)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the store to the newest schema, from whatever it is, in one transaction."""
    _set_journal_mode(connection)
    begin_immediate(connection)
    try:
        _take_steps(connection, _version(connection, path))
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Tell whether the file holds no store yet; DataDirError when it holds something else."""
    return _version(connection, path) == 0


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Return when the store has exactly this program's schema; DataDirError says what to do."""
    version = _version(connection, path)
    if version < len(MIGRATIONS):
        raise DataDirError(
            f"store {path} was written by an older version (schema {version}, this one needs"
            f" {len(MIGRATIONS)}): start `proxy-operator run` with it once to upgrade it"
        )


def is_current(connection: sqlite3.Connection) -> bool:
    """Tell whether the store still has this program's schema; cheap enough for every write."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(version == len(MIGRATIONS))


def _version(connection: sqlite3.Connection, path: Path) -> int:
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if mark != APPLICATION_ID and tables:
        raise DataDirError(f"{path} is another program's database: choose another --data-dir")
    if version > len(MIGRATIONS):
        raise DataDirError(
            f"store {path} was written by a newer version (schema {version}, this one knows"
            f" {len(MIGRATIONS)}): use that version of proxy-operator"
        )
    return int(version)


def _take_steps(connection: sqlite3.Connection, version: int) -> None:
    for step in MIGRATIONS[version:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute(
        "INSERT OR IGNORE INTO store (id, cluster_id, resource_version) VALUES (1, ?, 1)",
        (str(uuid.uuid4()),),
    )


def _set_journal_mode(connection: sqlite3.Connection) -> None:
    # Persistent: set when the store is made, found set ever after.
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise DataDirError(
            f"the file system of the data directory cannot hold a write-ahead log (mode {mode}):"
            " choose a --data-dir on a local disk"
        )
