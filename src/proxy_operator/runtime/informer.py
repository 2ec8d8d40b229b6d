"""Keeps the local copy of one kind current: list once, then watch, for ever.

The store only moves forward. What arrives late, from the watch or from a slow reply, is dropped
by its resource version: versions of one kind grow with every change, so they compare as integers
(https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions). The one
exception is a list, which is the truth about everything not written by us while it was under way.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from datetime import timedelta
from typing import Final, Generic

from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.errors import ExpiredError, ObjectError
from proxy_operator.runtime.objects import (
    ListerWatcher,
    Object,
    ObjectKey,
    ObjectList,
    T,
    WatchEvent,
    WatchEventType,
    key_of,
)
from proxy_operator.runtime.ratelimit import jittered
from proxy_operator.runtime.store import Indexer, Store

logger = logging.getLogger(__name__)

_SETTLED_AFTER: Final = 5.0
"""A watch that ended sooner, in seconds, is not followed by another one at once."""

_ALIVE_AFTER: Final = 30.0
"""A watch open for so many seconds is taken to work even when nothing happens.

Adapters must fail a connection that cannot be made well before.
"""

_BACKOFF_BASE: Final = timedelta(milliseconds=500)
_BACKOFF_CAP: Final = timedelta(seconds=30)

_GRAVES: Final = 10_000
"""How many deleted objects are remembered; far more than can be deleted during one reply."""

_FOREVER: Final = 2**63


class Informer(Generic[T]):
    """The local copy of the objects of a kind (of a namespace, with some labels)."""

    def __init__(
        self,
        client: ListerWatcher,
        kind: type[T],
        *,
        clock: Clock,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        indexers: Mapping[str, Indexer[T]] | None = None,
    ) -> None:
        self.store: Store[T] = Store(indexers)
        self.kind = kind
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._labels = dict(labels or {})
        self._synced = asyncio.Event()
        self._version: str | None = None
        self._listed = 0  # version of the last list
        self._failures = 0
        self._lost_at: float | None = None
        self._graves: dict[str, int] = {}  # uid -> newest version at which it was known to be gone
        self._observed: set[ObjectKey] | None = None  # own writes during the list under way
        self._held: dict[ObjectKey, list[WatchEvent[T]]] = {}  # keys whose write is under way

    @property
    def name(self) -> str:
        """The kind, and the labels asked for."""
        return " ".join((self.kind.__name__, *(f"{k}={v}" for k, v in self._labels.items())))

    @property
    def has_synced(self) -> bool:
        """Whether the first list is in the store."""
        return self._synced.is_set()

    @property
    def lost_at(self) -> float | None:
        """Monotonic seconds at which list and watch began to fail; None while they work."""
        return self._lost_at

    async def wait_for_sync(self) -> None:
        """Return once the first list is in the store and the handlers know of it."""
        await self._synced.wait()

    async def run(self) -> None:
        """List and watch until cancelled; failures of the store are waited out."""
        while True:
            is_settled = False
            try:
                if self._version is None:
                    self._version = await self._list()
                is_settled = await self._watch(self._version)
            except ExpiredError:
                logger.info("watch history expired, listing again", extra={"kind": self.name})
                self._version = None
            except ObjectError as err:
                self._lose(str(err))
            if not is_settled:
                wait = jittered(self._failures, _BACKOFF_BASE, _BACKOFF_CAP)
                self._failures += 1
                await asyncio.sleep(wait.total_seconds())

    @contextmanager
    def writing(self, key: ObjectKey) -> Iterator[None]:
        """Hold back what the watch says of a key while a write of ours is under way.

        Its own event may overtake its reply: it must not pass for somebody else's change. What
        was held back and is newer than the reply is told at the end.
        """
        if key in self._held:
            yield  # the other write tells it all when it ends
            return
        self._held[key] = []
        try:
            yield
        finally:
            for event in self._held.pop(key):
                self._apply(event)

    def observe(self, obj: T, *, is_echo: bool = False) -> None:
        """Take in the object that a write of ours returned, without waiting for the watch."""
        key = key_of(obj)
        if self._observed is not None:
            self._observed.add(key)
        if self._is_outlived(obj):
            return
        if self._selects(obj):
            self._accept(obj, is_echo=is_echo)
        else:
            self._drop(key, obj.metadata.uid, _version_of(obj))

    def _is_outlived(self, obj: T) -> bool:
        """Tell whether a list newer than this reply did not show the object.

        Then it is gone, and no event will come to say so.
        """
        stored = self.store.get(key_of(obj))
        is_stored = stored is not None and stored.metadata.uid == obj.metadata.uid
        return not is_stored and _version_of(obj) <= self._listed

    def observe_deleted(self, key: ObjectKey, uid: str) -> None:
        """Take in that a write of ours removed that very object."""
        self._drop(key, uid, _FOREVER)

    async def _list(self) -> str:
        self._observed = set()
        try:
            listing = await self._client.list(
                self.kind, namespace=self._namespace, labels=self._labels
            )
            self._replace(listing, self._observed)
        finally:
            self._observed = None
        self._regain()
        self._synced.set()
        return listing.resource_version

    async def _watch(self, version: str) -> bool:
        """Follow one stream to its end; True when the next one may follow without delay."""
        started = self._clock.monotonic()
        alive = asyncio.get_running_loop().call_later(_ALIVE_AFTER, self._note_life)
        stream = self._client.watch(
            self.kind, version, namespace=self._namespace, labels=self._labels
        )
        has_delivered = False
        try:
            async with aclosing(stream):
                async for event in stream:
                    has_delivered = True
                    self._note_life()
                    self._apply(event)
                    self._version = event.resource_version
        finally:
            alive.cancel()
        is_settled = self._clock.monotonic() - started >= _SETTLED_AFTER
        if not is_settled and not has_delivered:
            self._lose("the watch ended at once")
        return is_settled

    def _apply(self, event: WatchEvent[T]) -> None:
        obj = event.object
        if obj is None or event.type is WatchEventType.BOOKMARK:
            return
        if (held := self._held.get(key_of(obj))) is not None:
            held.append(event)
            return
        if event.type is WatchEventType.DELETED:
            self._drop(key_of(obj), obj.metadata.uid, int(event.resource_version))
        else:
            self._accept(obj)

    def _replace(self, listing: ObjectList[T], observed: set[ObjectKey]) -> None:
        """Make the store equal to the list, but for newer writes of our own."""
        version = self._listed = int(listing.resource_version)
        listed = {key_of(obj): obj.metadata.uid for obj in listing.items}
        unreadable = frozenset(listing.unreadable)
        for stored in self.store.list():
            key, uid = key_of(stored), stored.metadata.uid
            is_newer = key in observed and _version_of(stored) > version
            if listed.get(key) != uid and uid not in unreadable and not is_newer:
                self._bury(uid, version)
                self.store.remove(key)
        for obj in listing.items:
            key = key_of(obj)
            if key in observed or obj.metadata.uid in self._graves:
                self._accept(obj)
            elif _identity(self.store.get(key)) != _identity(obj):
                self.store.put(obj)

    def _accept(self, obj: T, *, is_echo: bool = False) -> None:
        """Store an object unless something newer is known of it or of its name."""
        uid, version = obj.metadata.uid, _version_of(obj)
        if version <= self._graves.get(uid, -1):
            return
        key = key_of(obj)
        stored = self.store.get(key)
        if stored is not None:
            if version <= _version_of(stored):
                return
            if stored.metadata.uid != uid:
                self._drop(key, stored.metadata.uid, _FOREVER)
        self.store.put(obj, is_echo=is_echo)

    def _drop(self, key: ObjectKey, uid: str, version: int) -> None:
        """Remove an object that was gone at that version, unless a newer state is stored."""
        self._bury(uid, version)
        stored = self.store.get(key)
        if stored is not None and stored.metadata.uid == uid and _version_of(stored) <= version:
            self.store.remove(key)

    def _bury(self, uid: str, version: int) -> None:
        self._graves[uid] = max(version, self._graves.pop(uid, version))
        if len(self._graves) > _GRAVES:
            del self._graves[next(iter(self._graves))]

    def _selects(self, obj: Object) -> bool:
        meta = obj.metadata
        return self._namespace in {None, meta.namespace} and all(
            meta.labels.get(label) == value for label, value in self._labels.items()
        )

    def _lose(self, why: str) -> None:
        if self._lost_at is None:
            self._lost_at = self._clock.monotonic()
            logger.warning("lost the watch, retrying", extra={"kind": self.name, "error": why})

    def _note_life(self) -> None:
        self._failures = 0
        self._regain()

    def _regain(self) -> None:
        if self._lost_at is not None:
            seconds = round(self._clock.monotonic() - self._lost_at, 1)
            self._lost_at = None
            logger.info("the watch works again", extra={"kind": self.name, "seconds": seconds})


def _version_of(obj: Object) -> int:
    return int(obj.metadata.resource_version or 0)


def _identity(obj: Object | None) -> tuple[str, str] | None:
    return None if obj is None else (obj.metadata.uid, obj.metadata.resource_version)
