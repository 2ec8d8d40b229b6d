"""SQLite connections as this store uses them.

Transactions are opened by hand (`isolation_level=None`), and writers take the write lock at BEGIN:
a transaction that read first and upgraded later could fail with work done.
"""

import sqlite3
from pathlib import Path
from typing import Final

_BUSY_SECONDS: Final = 5.0
# SQLite's own waiting backs off to 100 ms a try, and loses against a writer that is never idle
# for so long. Many short waits find the gap between two of its transactions.
_BEGIN_WAIT_MILLIS: Final = 8
_BEGIN_ATTEMPTS: Final = 2000


def connect(path: Path, *, writes: bool) -> sqlite3.Connection:
    """Open an existing database file; sqlite3.Error. Close the connection after use."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        # FULL: the log is synced at every commit, so what was acknowledged survives a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 16777216")
        if not writes:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def begin_immediate(connection: sqlite3.Connection) -> None:
    """Open a write transaction, waiting some 20 s for other processes; sqlite3.OperationalError."""
    connection.execute(f"PRAGMA busy_timeout = {_BEGIN_WAIT_MILLIS}")
    try:
        for attempt in range(1, _BEGIN_ATTEMPTS + 1):
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as err:
                if not is_busy(err) or attempt == _BEGIN_ATTEMPTS:
                    raise
            else:
                return
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(_BUSY_SECONDS * 1000)}")


def is_busy(err: sqlite3.OperationalError) -> bool:
    """Tell whether another connection holds a lock that is needed."""
    return err.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
