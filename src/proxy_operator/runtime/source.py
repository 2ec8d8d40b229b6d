"""What makes keys wait in a queue: changes of objects, and calls from other parts of the process.

Sources say that something may have changed, never what: a pass looks for itself.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from proxy_operator.runtime.objects import ObjectKey, T, key_of
from proxy_operator.runtime.store import Store, StoreEvent


class Sink(Protocol):
    """Where keys go: a `WorkQueue`."""

    def add(self, key: ObjectKey) -> None:
        """Ask for a pass of that key."""


def enqueue_own(store: Store[T], sink: Sink) -> None:
    """Add the key of every object that appears, changes or goes.

    Only the echo of this process's own writes is dropped: a pass that wrote says itself when it
    wants to run again, and an event would bypass its backoff.
    """

    def handle(event: StoreEvent[T]) -> None:
        obj = event.new or event.old
        if obj is not None and not event.is_echo:
            sink.add(key_of(obj))

    store.add_handler(handle)


def enqueue_mapped(
    store: Store[T], sink: Sink, keys_of: Callable[[T], Iterable[ObjectKey]]
) -> None:
    """Add the keys that `keys_of` draws from every object that appears, changes or goes.

    Of a change both states are asked, so whoever lost the object learns of it too.
    """

    def handle(event: StoreEvent[T]) -> None:
        states = (state for state in (event.old, event.new) if state is not None)
        for key in dict.fromkeys(key for state in states for key in keys_of(state)):
            sink.add(key)

    store.add_handler(handle)


class Channel:
    """Keys that another part of the process wants a pass for, never waiting for the queue.

    Bounded, so that whoever offers learns that nobody takes (before election, say) and keeps
    what it wanted to say.
    """

    def __init__(self, name: str, sink: Sink, capacity: int = 1024) -> None:
        self.name = name
        self._sink = sink
        self._capacity = capacity
        self._keys: dict[ObjectKey, None] = {}  # ordered, each key once
        self._offered = asyncio.Event()

    def offer(self, key: ObjectKey) -> bool:
        """Pass a key on; False when the channel is full and the key was not taken."""
        if key not in self._keys and len(self._keys) >= self._capacity:
            return False
        self._keys[key] = None
        self._offered.set()
        return True

    async def run(self) -> None:
        """Move keys into the queue until cancelled."""
        while True:
            await self._offered.wait()
            self._offered.clear()
            keys, self._keys = self._keys, {}
            for key in keys:
                self._sink.add(key)
