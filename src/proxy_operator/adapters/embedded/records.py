"""Reading objects and history out of the tables; all in the caller's read transaction."""

import sqlite3
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from proxy_operator.adapters.embedded.transaction import decode
from proxy_operator.domain.kinds import Kind, kind_named
from proxy_operator.runtime.changes import Change, Selector
from proxy_operator.runtime.errors import ExpiredError, NotFoundError, UnavailableError
from proxy_operator.runtime.objects import ObjectKey, ObjectList, T, WatchEventType

_CHUNK: Final = 1000


class Stretch(NamedTuple):
    """A part of the history without a gap, from just after a version up to another."""

    changes: list[Change]
    reached: int
    is_complete: bool
    """Nothing newer was in the store when it was read."""


def get(connection: sqlite3.Connection, kind: Kind[T], key: ObjectKey) -> T:
    """Read one object; NotFoundError."""
    row = connection.execute(
        "SELECT document FROM objects WHERE kind = ? AND namespace = ? AND name = ?",
        (kind.kind, *key),
    ).fetchone()
    if row is None:
        raise NotFoundError(f"{kind.kind} {key} not found")
    return decode(kind, row[0])


def list_objects(
    connection: sqlite3.Connection, kind: Kind[Any], selector: Selector
) -> ObjectList[Any]:
    """Read all objects the selector asks for, by namespace and name, at one version."""
    version = current_version(connection)
    query = "SELECT document FROM objects WHERE kind = ?"
    where: tuple[str, ...] = (kind.kind,)
    if selector.namespace is not None:
        query += " AND namespace = ?"
        where = (*where, selector.namespace)
    rows = connection.execute(f"{query} ORDER BY namespace, name", where)
    objects = (decode(kind, text) for (text,) in rows)
    return ObjectList([obj for obj in objects if selector.matches(obj)], str(version))


def current_version(connection: sqlite3.Connection) -> int:
    """Read the version of the last change."""
    (version,) = connection.execute("SELECT resource_version FROM store").fetchone()
    return int(version)


def read_history(
    connection: sqlite3.Connection, after: int, kind: Kind[Any] | None = None
) -> Stretch:
    """Read the changes after a version, a bounded number at a time; of one kind, or of all.

    ExpiredError when the version is older than the history kept, or was never reached.
    """
    current = current_version(connection)
    (oldest,) = connection.execute("SELECT min(resource_version) FROM history").fetchone()
    if after > current or after < (current if oldest is None else oldest - 1):
        raise ExpiredError(f"resource version {after} is not in the history kept: list again")
    end = min(current, after + _CHUNK)
    query = (
        "SELECT resource_version, type, kind, document, previous FROM history"
        " WHERE resource_version > ? AND resource_version <= ?"
    )
    where: tuple[int | str, ...] = (after, end)
    if kind is not None:
        query += " AND kind = ?"
        where = (*where, kind.kind)
    rows = connection.execute(f"{query} ORDER BY resource_version", where)
    return Stretch(_changes(rows), end, end == current)


def _changes(rows: Iterable[tuple[int, str, str, str, str | None]]) -> list[Change]:
    changes = []
    for version, type_, name, text, previous in rows:
        kind = kind_named(name)
        if kind is None:
            raise UnavailableError(f"the history holds an object of the unknown kind {name}")
        before = None if previous is None else decode(kind, previous)
        changes.append(Change(version, WatchEventType(type_), decode(kind, text), before))
    return changes
