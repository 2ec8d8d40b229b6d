"""A record of an election as a server keeps it, and the lines by which candidates reach it."""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import TypeVar

from proxy_operator.runtime.election import LockRecord, StoredRecord
from proxy_operator.runtime.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    UnavailableError,
)

T = TypeVar("T")


class Server:
    """Keeps the record, and checks what no client may ever write."""

    def __init__(self) -> None:
        self.record: LockRecord | None = None
        self.version = 0
        self.holders: list[str] = []

    def get(self) -> StoredRecord:
        if self.record is None:
            raise NotFoundError("no lock")
        return StoredRecord(self.record, self.version)

    def create(self, record: LockRecord) -> StoredRecord:
        if self.record is not None:
            raise AlreadyExistsError("lock exists")
        return self._put(record)

    def update(self, version: int, record: LockRecord) -> StoredRecord:
        if self.record is None:
            raise NotFoundError("no lock")
        if version != self.version:
            raise ConflictError("lock has changed")
        if record.holder in ("", self.record.holder):
            assert record.transitions == self.record.transitions
        else:
            assert record.transitions == self.record.transitions + 1
        if record.holder and record.holder == self.record.holder:
            assert record.acquired_at == self.record.acquired_at
            assert record.renewed_at != self.record.renewed_at
        return self._put(record)

    def _put(self, record: LockRecord) -> StoredRecord:
        self.record = record
        self.version += 1
        self.holders.append(record.holder)
        return StoredRecord(record, self.version)


class Fate(Enum):
    """What becomes of a request."""

    ANSWERED = auto()
    REFUSED = auto()
    """Never arrives, and the client is told."""
    LOST = auto()
    """Never arrives, and nobody is told."""
    ANSWER_LOST = auto()
    """Is carried out, and nobody is told."""
    ANSWER_BROKEN = auto()
    """Is carried out, and the client is told that the connection broke."""


class Line:
    """One candidate's way to the server (`LockStore`)."""

    name = "operator"

    def __init__(self, server: Server) -> None:
        self.server = server
        self.there = 0.0
        self.back = 0.0
        self.fate = Fate.ANSWERED
        self.calls: list[str] = []

    async def get(self) -> StoredRecord:
        return await self.carry("get", self.server.get)

    async def create(self, record: LockRecord) -> StoredRecord:
        return await self.carry("create", lambda: self.server.create(record))

    async def update(self, stored: StoredRecord, record: LockRecord) -> StoredRecord:
        version = stored.origin
        assert isinstance(version, int)
        return await self.carry("update", lambda: self.server.update(version, record))

    async def carry(self, verb: str, act: Callable[[], T]) -> T:
        self.calls.append(verb)
        fate, back = self.fate, self.back
        await asyncio.sleep(self.there)
        if fate is Fate.REFUSED:
            raise UnavailableError("connection refused")
        if fate is Fate.LOST:
            await asyncio.Event().wait()
        try:
            return act()
        finally:
            # On its way back, an error is as slow as an answer, and as easily lost.
            if fate is Fate.ANSWER_LOST:
                await asyncio.Event().wait()
            await asyncio.sleep(back)
            if fate is Fate.ANSWER_BROKEN:
                raise UnavailableError("connection reset")
