"""The object port in memory: no thread, no disk, so that a loop on virtual time decides all.

Verbs and watch semantics are the ones every home of ours uses; the contract suite runs on it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from proxy_operator.domain.kinds import (
    KINDS,
    Kind,
    addressed,
    content_of,
    format_time,
    kind_of,
    to_document,
)
from proxy_operator.runtime import verbs
from proxy_operator.runtime.changes import Change, Selector
from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.errors import ExpiredError, FieldError, InvalidError, NotFoundError
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


class Admission(Protocol):
    """Decides what may be stored."""

    def admit(self, manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the object with its defaults, or raise InvalidError."""


class DecodingAdmission:
    """Admits whatever decodes into its type: quick, and enough where admission is not at issue."""

    def admit(self, manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the object in the form its type gives it; InvalidError for what does not fit."""
        del old
        row = next((kind for kind in KINDS if kind.kind == manifest.get("kind")), None)
        if row is None:
            raise InvalidError("manifest", (FieldError("kind", "", "must be a known kind"),))
        texts = manifest.get("stringData") or {}
        encoded = msgspec.to_builtins({key: text.encode() for key, text in texts.items()})
        data = {**(manifest.get("data") or {}), **encoded}
        try:
            obj = msgspec.convert({**manifest, **({"data": data} if data else {})}, row.type)
        except msgspec.ValidationError as err:
            rule, _, path = str(err).partition(" - at `$.")
            raise InvalidError(row.kind, (FieldError(path.rstrip("`"), "", rule),)) from err
        document: dict[str, Any] = to_document(obj)
        document["metadata"].setdefault("namespace", "default")
        return document


class FakeObjectClient:
    """All objects, and the history of their changes, in two collections."""

    def __init__(
        self, clock: Clock, admission: Admission | None = None, history_limit: int = 10_000
    ) -> None:
        self._clock = clock
        self._admission = admission or DecodingAdmission()
        self._documents: dict[tuple[str, ObjectKey], verbs.Document] = {}
        self._objects: dict[tuple[str, ObjectKey], Any] = {}
        self._history: deque[Change] = deque(maxlen=history_limit)
        self._version = 1
        self._created = 0
        self._changed = asyncio.Event()

    async def get(self, kind: type[T], key: ObjectKey) -> T:
        await asyncio.sleep(0)
        row = kind_of(kind)
        found: T | None = self._objects.get((row.kind, key))
        if found is None:
            raise NotFoundError(f"{row.kind} {key} not found")
        return found

    async def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ObjectList[T]:
        await asyncio.sleep(0)
        selector = Selector(kind, namespace, dict(labels or {}))
        found = [obj for _, obj in sorted(self._objects.items()) if selector.matches(obj)]
        return ObjectList(found, str(self._version))

    async def watch(
        self,
        kind: type[T],
        resource_version: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        await asyncio.sleep(0)
        selector = Selector(kind, namespace, dict(labels or {}))
        position = int(resource_version) if resource_version.isdecimal() else -1
        while True:
            changed = self._changed
            for change in self._after(position):
                position = change.resource_version
                event = selector.event_of(change)
                if event is not None:
                    yield event
            if position == self._version:
                await changed.wait()

    async def create(self, obj: T) -> T:
        await asyncio.sleep(0)
        row = kind_of(type(obj))
        admitted = self._admission.admit(to_document(obj), None)
        target = self._target(row, key_of(obj))
        content = content_of(row, admitted)
        return self._commit(
            row, target, verbs.create(target, admitted["metadata"], content, self._stamp())
        )

    async def patch_metadata(
        self, kind: type[T], key: ObjectKey, preconditions: Preconditions, patch: MetadataPatch
    ) -> T:
        await asyncio.sleep(0)
        row = kind_of(kind)
        target = self._target(row, key)
        return self._commit(row, target, verbs.patch_metadata(target, preconditions, patch))

    async def patch_status(self, obj: T) -> T:
        # Read before the call can be suspended: the caller may go on changing its draft.
        status = to_document(obj)["status"]
        await asyncio.sleep(0)
        row, meta = kind_of(type(obj)), obj.metadata
        target = self._target(row, key_of(obj))
        preconditions = Preconditions(meta.uid, meta.resource_version)
        return self._commit(row, target, verbs.patch_status(target, preconditions, status))

    async def apply(self, manifest: Mapping[str, Any]) -> Applied:
        await asyncio.sleep(0)
        address = addressed(manifest)
        if address is None:
            self._admission.admit(manifest, None)
            fault = FieldError("metadata.name", "", "is required, and so is kind")
            raise InvalidError("manifest", (fault,))
        row, namespace, name = address
        target = self._target(row, ObjectKey(namespace, name))
        admitted = self._admission.admit(manifest, target.stored)
        content = content_of(row, admitted)
        decision = verbs.apply(target, admitted["metadata"], content, self._stamp())
        obj = self._commit(row, target, decision)
        if decision.event is None:
            return Applied(obj, ApplyOutcome.UNCHANGED)
        is_new = decision.event is WatchEventType.ADDED
        return Applied(obj, ApplyOutcome.CREATED if is_new else ApplyOutcome.CONFIGURED)

    async def delete(
        self, kind: type[T], key: ObjectKey, preconditions: Preconditions | None = None
    ) -> None:
        await asyncio.sleep(0)
        row = kind_of(kind)
        target = self._target(row, key)
        self._commit(row, target, verbs.delete(target, preconditions, self._stamp().now))

    def _target(self, row: Kind[Any], key: ObjectKey) -> verbs.Target:
        return verbs.Target(row, key, self._documents.get((row.kind, key)))

    def _stamp(self) -> verbs.Stamp:
        self._created += 1
        uid = f"00000000-0000-4000-9000-{self._created:012d}"
        return verbs.Stamp(uid, format_time(self._clock.now()))

    def _commit(self, row: Kind[T], target: verbs.Target, decision: verbs.Decision) -> T:
        if decision.event is None:
            return _decoded(row, decision.document)
        self._version += 1
        document = verbs.with_version(decision.document, self._version)
        obj, previous = _decoded(row, document), None
        if target.stored is not None and verbs.labels_differ(target.stored, document):
            previous = _decoded(row, verbs.with_version(target.stored, self._version))
        place = (row.kind, target.key)
        if decision.event is WatchEventType.DELETED:
            del self._documents[place], self._objects[place]
        else:
            self._documents[place], self._objects[place] = document, obj
        self._history.append(Change(self._version, decision.event, obj, previous))
        self._changed.set()
        self._changed = asyncio.Event()
        return obj

    def _after(self, position: int) -> Sequence[Change]:
        oldest = self._version - len(self._history)
        if not oldest <= position <= self._version:
            raise ExpiredError(f"resource version {position} is not in the history kept")
        return [*self._history][position - oldest :]


def _decoded(row: Kind[T], document: verbs.Document) -> T:
    return row.decode(msgspec.json.encode(document))
