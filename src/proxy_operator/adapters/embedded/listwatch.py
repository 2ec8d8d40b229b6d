"""Watching: every watcher is told of every change once, in order, whoever wrote it.

The feed stands at a resource version. Own commits move it at once; what other processes wrote is
found by comparing `PRAGMA data_version` and read from the history. One of those who wait does
the polling, so a store that nobody watches costs nothing.
"""

import asyncio
import functools
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, Final

from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.records import read_history
from proxy_operator.domain.kinds import kind_of
from proxy_operator.runtime.changes import Change, Selector
from proxy_operator.runtime.errors import ExpiredError
from proxy_operator.runtime.objects import WatchEvent, WatchEventType

_POLL_SECONDS: Final = 0.05
_BOOKMARK_AFTER: Final = 1000
"""Changes that did not concern a watcher before it is told how far it has come."""
_BACKLOG_LIMIT: Final = 20_000


class ChangeFeed:
    """Hands the changes to the watchers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watchers: set[_Watcher] = set()
        self._position = 0
        """The version all watchers have been told up to; means nothing while there is none."""
        self._is_behind = False
        self._reading = asyncio.Lock()
        self._data_version: int | None = None
        self._poller: _Watcher | None = None
        database.add_listener(self._committed)

    async def watch(
        self, selector: Selector, resource_version: str
    ) -> AsyncGenerator[WatchEvent[Any], None]:
        """Yield what the selector sees of every change after that version. ExpiredError."""
        watcher = _Watcher(selector, _parse(resource_version))
        has_joined = False
        try:
            while True:
                for event in watcher.take():
                    yield event
                if has_joined:
                    await self._advance(watcher)
                else:
                    has_joined = await self._join(watcher)
        finally:
            self._watchers.discard(watcher)

    async def _join(self, watcher: "_Watcher") -> bool:
        """Read on in the history; True when the watcher has come to where the feed stands."""
        kind = kind_of(watcher.selector.kind)
        query = functools.partial(read_history, after=watcher.position, kind=kind)
        stretch = await self._database.read(query)
        watcher.offer(stretch.changes, stretch.reached)
        # No await from here on: a change is in what was read, or the feed brings it.
        if not stretch.is_complete or (self._watchers and self._position > stretch.reached):
            return False
        if not self._watchers:
            self._position = watcher.position
            self._is_behind = True
        self._watchers.add(watcher)
        return True

    async def _advance(self, watcher: "_Watcher") -> None:
        """Return when there is something for the watcher, or may be."""
        if self._is_behind:
            await self._catch_up()
        elif self._poller is None:
            self._poller = watcher
            try:
                await self._poll(watcher)
            finally:
                self._hand_over()
        else:
            await watcher.woken.wait()

    async def _poll(self, watcher: "_Watcher") -> None:
        while not self._is_behind:
            try:
                async with asyncio.timeout(_POLL_SECONDS):
                    await watcher.woken.wait()
            except TimeoutError:
                self._is_behind = self._database.data_version() != self._data_version
            else:
                return

    def _hand_over(self) -> None:
        # All are asked to poll instead: the consumer of this watcher, or of any other one, may
        # have its hands full and not come back for long.
        self._poller = None
        for watcher in self._watchers:
            watcher.woken.set()

    def _committed(self, changes: Sequence[Change]) -> None:
        if changes[0].resource_version > self._position + 1:
            self._is_behind = True
            for watcher in self._watchers:
                watcher.woken.set()
        else:
            self._tell(changes, changes[-1].resource_version)

    def _tell(self, changes: Sequence[Change], reached: int) -> None:
        for watcher in [*self._watchers]:
            watcher.offer(changes, reached)
            if watcher.backlog > _BACKLOG_LIMIT:
                self._watchers.discard(watcher)
                watcher.fail(ExpiredError("the watcher does not keep up: list again"))
        self._position = max(self._position, reached)

    async def _catch_up(self) -> None:
        async with self._reading:
            if not self._is_behind:
                return
            self._is_behind = False
            # The number first: what is committed in between is read now and looked for again.
            version = self._database.data_version()
            try:
                query = functools.partial(read_history, after=self._position)
                stretch = await self._database.read(query)
            except ExpiredError as err:
                # All stand at the same version, so nobody can be told the rest.
                for watcher in self._watchers:
                    watcher.fail(err)
                self._watchers.clear()
            except BaseException:
                self._is_behind = True
                raise
            else:
                self._data_version = version
                self._tell(stretch.changes, stretch.reached)
                self._is_behind = self._is_behind or not stretch.is_complete


class _Watcher:
    """What one watcher has still to be told."""

    def __init__(self, selector: Selector, position: int) -> None:
        self.selector = selector
        self.position = position
        self.woken = asyncio.Event()
        self._events: deque[WatchEvent[Any]] = deque()
        self._told = position
        self._error: ExpiredError | None = None

    @property
    def backlog(self) -> int:
        """Events not yet taken."""
        return len(self._events)

    def offer(self, changes: Sequence[Change], reached: int) -> None:
        """Take over the changes that are new to this watcher."""
        for change in changes:
            if change.resource_version > self.position:
                event = self.selector.event_of(change)
                if event is not None:
                    self._put(event, change.resource_version)
        self.position = max(self.position, reached)
        if self.position - self._told >= _BOOKMARK_AFTER:
            bookmark = WatchEvent(WatchEventType.BOOKMARK, None, str(self.position))
            self._put(bookmark, self.position)

    def take(self) -> Iterable[WatchEvent[Any]]:
        """Yield what waits; then raise what ended the watch, if anything did."""
        while self._events:
            yield self._events.popleft()
        self.woken.clear()
        if self._error is not None:
            raise self._error

    def fail(self, err: ExpiredError) -> None:
        """End the watch."""
        self._error = err
        self.woken.set()

    def _put(self, event: WatchEvent[Any], version: int) -> None:
        self._events.append(event)
        self._told = version
        self.woken.set()


def _parse(resource_version: str) -> int:
    try:
        return int(resource_version)
    except ValueError as err:
        raise ExpiredError(f"{resource_version!r} is no version of this store") from err
