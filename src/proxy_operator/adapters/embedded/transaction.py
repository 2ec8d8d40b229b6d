"""One write transaction: reads, decides, writes, and gives every change its resource version.

Resource versions have no gaps: each is the number of exactly one row of the history.
"""

import sqlite3
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from proxy_operator.domain.kinds import Kind
from proxy_operator.runtime.changes import Change
from proxy_operator.runtime.errors import FieldError, InvalidError, UnavailableError
from proxy_operator.runtime.objects import ObjectKey, T, WatchEventType
from proxy_operator.runtime.verbs import Decision, Document, Target, labels_differ, with_version

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")
_server_owned: Final = itemgetter("uid", "resourceVersion")


class Outcome(NamedTuple, Generic[R]):
    """What came of one operation: its value, or the error it raised."""

    value: R | None
    error: Exception | None


class Transaction:
    """An open `BEGIN IMMEDIATE`; `finish` and COMMIT are the owner's."""

    def __init__(self, connection: sqlite3.Connection, history_limit: int) -> None:
        self.connection = connection
        self.changes: list[Change] = []
        self._history_limit = history_limit
        (self._base,) = connection.execute("SELECT resource_version FROM store").fetchone()

    @property
    def resource_version(self) -> int:
        """The version of the last change."""
        return int(self._base) + len(self.changes)

    def attempt(self, operation: "Callable[[Transaction], R]") -> Outcome[R]:
        """Run one operation; what it wrote is undone when it raises. sqlite3.Error passes."""
        done = len(self.changes)
        self.connection.execute("SAVEPOINT operation")
        try:
            outcome = Outcome(operation(self), None)
        except sqlite3.Error:
            raise
        except Exception as err:  # noqa: BLE001 - handed to whoever asked for the operation
            self.connection.execute("ROLLBACK TO operation")
            del self.changes[done:]
            outcome = Outcome(None, err)
        self.connection.execute("RELEASE operation")
        return outcome

    def target(self, kind: Kind[Any], key: ObjectKey) -> Target:
        """Read what is stored under a key."""
        row = self.connection.execute(
            "SELECT document FROM objects WHERE kind = ? AND namespace = ? AND name = ?",
            (kind.kind, *key),
        ).fetchone()
        return Target(kind, key, None if row is None else _read(row[0], kind, key))

    def commit(self, kind: Kind[T], target: Target, decision: Decision) -> T:
        """Write a decision, if it asks for that, and return the object after it."""
        if decision.event is None:
            return decode(kind, encode(target, decision.document))
        version = self.resource_version + 1
        text = encode(target, with_version(decision.document, version))
        obj = _admitted(kind, target, text)
        previous = None
        if target.stored is not None and labels_differ(target.stored, decision.document):
            previous = encode(target, with_version(target.stored, version))
        self._write(target, decision.event, text)
        self.connection.execute(
            "INSERT INTO history (resource_version, kind, type, document, previous)"
            " VALUES (?, ?, ?, ?, ?)",
            (version, kind.kind, decision.event, text, previous),
        )
        before = None if previous is None else decode(kind, previous)
        self.changes.append(Change(version, decision.event, obj, before))
        return obj

    def finish(self) -> None:
        """Note the version reached, and shorten the history now and then."""
        if not self.changes:
            return
        version = self.resource_version
        self.connection.execute("UPDATE store SET resource_version = ?", (version,))
        slack = max(1, self._history_limit // 10)
        if version // slack != self._base // slack:
            self.connection.execute(
                "DELETE FROM history WHERE resource_version <= ?", (version - self._history_limit,)
            )

    def _write(self, target: Target, event: WatchEventType, text: str) -> None:
        row = (target.kind.kind, *target.key)
        match event:
            case WatchEventType.ADDED:
                self.connection.execute(
                    "INSERT INTO objects (document, kind, namespace, name) VALUES (?, ?, ?, ?)",
                    (text, *row),
                )
            case WatchEventType.DELETED:
                self.connection.execute(
                    "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?", row
                )
            case _:
                self.connection.execute(
                    "UPDATE objects SET document = ? WHERE kind = ? AND namespace = ? AND name = ?",
                    (text, *row),
                )


def encode(target: Target, document: Document) -> str:
    """Return the stored form; InvalidError for what JSON cannot hold (a lone surrogate)."""
    try:
        return msgspec.json.encode(document).decode()
    except (UnicodeEncodeError, OverflowError, TypeError) as err:
        fault = FieldError("", "", "holds a value that JSON cannot carry, such as half a character")
        raise InvalidError(str(target), (fault,)) from err


def decode(kind: Kind[T], text: str) -> T:
    """Read a stored object. UnavailableError when somebody damaged it: never pass over one."""
    try:
        return kind.decode(text)
    except msgspec.MsgspecError as err:
        raise UnavailableError(f"a stored {kind.kind} cannot be read: {err}") from err


def _admitted(kind: Kind[T], target: Target, text: str) -> T:
    try:
        return kind.decode(text)
    except msgspec.MsgspecError as err:
        raise InvalidError(str(target), (FieldError("", "", str(err)),)) from err


def _read(text: str, kind: Kind[Any], key: ObjectKey) -> Document:
    try:
        document: Document = msgspec.json.decode(text, type=dict[str, Any])
        _server_owned(document["metadata"])
    except (msgspec.MsgspecError, KeyError, TypeError) as err:
        raise UnavailableError(f"the stored {kind.kind} {key} cannot be read: {err}") from err
    return document
