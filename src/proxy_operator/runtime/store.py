"""The local copy of all objects of one kind, and the handlers that learn of every change.

Handlers run after the store changed, synchronously, on the loop; one that raises is logged and
the others still run. Objects are shared: never change one.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from proxy_operator.runtime.objects import Object, ObjectKey, T, key_of

logger = logging.getLogger(__name__)

T_co = TypeVar("T_co", bound=Object, covariant=True)
Indexer = Callable[[T], Iterable[str]]


class StoreEvent(NamedTuple, Generic[T]):
    """One change: `old` is None when added, `new` is None when deleted."""

    old: T | None
    new: T | None
    is_echo: bool = False
    """The change is this process's own write, seen at once through `observe`."""


Handler = Callable[[StoreEvent[T]], None]


class Lister(Protocol[T_co]):
    """Read side of a store."""

    def get(self, key: ObjectKey) -> T_co | None:
        """Return the object, or None."""

    def list(self, namespace: str | None = None) -> Sequence[T_co]:
        """Return all objects (of a namespace), in no order."""

    def by_index(self, index: str, value: str) -> Sequence[T_co]:
        """Return the objects for which the indexer of that name gave that value."""


class Store(Generic[T]):
    """Objects by key, and by the values that indexers draw from them."""

    def __init__(self, indexers: Mapping[str, Indexer[T]] | None = None) -> None:
        self._objects: dict[ObjectKey, T] = {}
        self._indexers = dict(indexers or {})
        self._indexes: dict[str, defaultdict[str, set[ObjectKey]]] = {
            name: defaultdict(set) for name in self._indexers
        }
        self._handlers: list[Handler[T]] = []

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: ObjectKey) -> T | None:
        return self._objects.get(key)

    def list(self, namespace: str | None = None) -> Sequence[T]:
        if namespace is None:
            return [*self._objects.values()]
        return [o for key, o in self._objects.items() if key.namespace == namespace]

    def by_index(self, index: str, value: str) -> Sequence[T]:
        keys = self._indexes[index].get(value, ())
        return [self._objects[key] for key in keys]

    def add_handler(self, handler: Handler[T]) -> None:
        """Call `handler` for every object now stored, then for every later change."""
        self._handlers.append(handler)
        for obj in [*self._objects.values()]:
            self._call(handler, StoreEvent(None, obj))

    def put(self, obj: T, *, is_echo: bool = False) -> None:
        """Store an object and tell the handlers."""
        key = key_of(obj)
        old = self._objects.get(key)
        self._unindex(key, old)
        self._objects[key] = obj
        for name, indexer in self._indexers.items():
            for value in indexer(obj):
                self._indexes[name][value].add(key)
        self._tell(StoreEvent(old, obj, is_echo))

    def remove(self, key: ObjectKey) -> None:
        """Forget an object and tell the handlers; unknown keys are ignored."""
        old = self._objects.pop(key, None)
        if old is None:
            return
        self._unindex(key, old)
        self._tell(StoreEvent(old, None))

    def _unindex(self, key: ObjectKey, old: T | None) -> None:
        if old is None:
            return
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(old):
                index[value].discard(key)
                if not index[value]:
                    del index[value]

    def _tell(self, event: StoreEvent[T]) -> None:
        # A copy: a handler that adds a handler has just shown it this very change.
        for handler in [*self._handlers]:
            self._call(handler, event)

    def _call(self, handler: Handler[T], event: StoreEvent[T]) -> None:
        try:
            handler(event)
        except Exception:
            logger.exception("a handler failed on an object change")
