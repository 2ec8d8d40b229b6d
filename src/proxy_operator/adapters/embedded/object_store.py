"""The object port over SQLite.

Every write reads, decides and writes inside one transaction, so two processes lose nothing.
"""

import uuid
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

from proxy_operator.adapters.embedded import records
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.listwatch import ChangeFeed
from proxy_operator.adapters.embedded.ports import Admission
from proxy_operator.adapters.embedded.transaction import Transaction
from proxy_operator.domain.kinds import (
    addressed,
    content_of,
    format_time,
    kind_of,
    to_document,
)
from proxy_operator.runtime import verbs
from proxy_operator.runtime.changes import Selector
from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.errors import FieldError, InvalidError
from proxy_operator.runtime.objects import (
    Applied,
    ApplyOutcome,
    MetadataPatch,
    ObjectKey,
    ObjectList,
    Preconditions,
    T,
    WatchEvent,
    WatchEventType,
    key_of,
)

_OUTCOMES: Final = {
    WatchEventType.ADDED: ApplyOutcome.CREATED,
    WatchEventType.MODIFIED: ApplyOutcome.CONFIGURED,
    None: ApplyOutcome.UNCHANGED,
}


class SqliteObjectClient:
    """All verbs over an open `Database`."""

    def __init__(self, database: Database, admission: Admission, clock: Clock) -> None:
        self._database = database
        self._admission = admission
        self._clock = clock
        self._feed = ChangeFeed(database)

    async def get(self, kind: type[T], key: ObjectKey) -> T:
        row = kind_of(kind)
        return await self._database.read(lambda c: records.get(c, row, key))

    async def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ObjectList[T]:
        row, selector = kind_of(kind), Selector(kind, namespace, dict(labels or {}))
        return await self._database.read(lambda c: records.list_objects(c, row, selector))

    def watch(
        self,
        kind: type[T],
        resource_version: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        return self._feed.watch(Selector(kind, namespace, dict(labels or {})), resource_version)

    async def create(self, obj: T) -> T:
        row, key, stamp = kind_of(type(obj)), key_of(obj), self._stamp()
        manifest = to_document(obj)

        def operation(transaction: Transaction) -> T:
            admitted = self._admission.admit(manifest, None)
            target = transaction.target(row, key)
            content = content_of(row, admitted)
            decision = verbs.create(target, admitted["metadata"], content, stamp)
            return transaction.commit(row, target, decision)

        return await self._database.write(operation)

    async def patch_metadata(
        self, kind: type[T], key: ObjectKey, preconditions: Preconditions, patch: MetadataPatch
    ) -> T:
        row = kind_of(kind)

        def operation(transaction: Transaction) -> T:
            target = transaction.target(row, key)
            decision = verbs.patch_metadata(target, preconditions, patch)
            return transaction.commit(row, target, decision)

        return await self._database.write(operation)

    async def patch_status(self, obj: T) -> T:
        row, key, meta = kind_of(type(obj)), key_of(obj), obj.metadata
        if not row.has_status:
            raise TypeError(f"{row.kind} has no status")
        status = to_document(obj)["status"]
        preconditions = Preconditions(meta.uid, meta.resource_version)

        def operation(transaction: Transaction) -> T:
            target = transaction.target(row, key)
            decision = verbs.patch_status(target, preconditions, status)
            return transaction.commit(row, target, decision)

        return await self._database.write(operation)

    async def apply(self, manifest: Mapping[str, Any]) -> Applied:
        stamp = self._stamp()
        return await self._database.write(lambda t: self._apply(t, manifest, stamp))

    async def delete(
        self, kind: type[T], key: ObjectKey, preconditions: Preconditions | None = None
    ) -> None:
        row, now = kind_of(kind), self._stamp().now

        def operation(transaction: Transaction) -> None:
            target = transaction.target(row, key)
            transaction.commit(row, target, verbs.delete(target, preconditions, now))

        await self._database.write(operation)

    def _apply(
        self, transaction: Transaction, manifest: Mapping[str, Any], stamp: verbs.Stamp
    ) -> Applied:
        address = addressed(manifest)
        if address is None:
            self._admission.admit(manifest, None)
            fault = FieldError("metadata.name", "", "is required, and so is kind")
            raise InvalidError("manifest", (fault,))
        row, namespace, name = address
        target = transaction.target(row, ObjectKey(namespace, name))
        admitted = self._admission.admit(manifest, target.stored)
        content = content_of(row, admitted)
        decision = verbs.apply(target, admitted["metadata"], content, stamp)
        obj = transaction.commit(row, target, decision)
        return Applied(obj, _OUTCOMES[decision.event])

    def _stamp(self) -> verbs.Stamp:
        return verbs.Stamp(str(uuid.uuid4()), format_time(self._clock.now()))
