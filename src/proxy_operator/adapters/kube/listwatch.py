"""Listing in pages and watching without losing a change.

Rules learned the hard way: lines end at `\\n` bytes and nowhere else (U+0085 and U+2028 may stand
inside a string); history may expire as an HTTP status and as a line of the stream; a connection
may go silent without an end, so reading has a limit a little over the server's own.
"""

import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from datetime import timedelta
from typing import Final, NamedTuple

import aiohttp

from proxy_operator.adapters.kube.client import KubeClient, Request
from proxy_operator.adapters.kube.codec import Codec, collection_path, label_selector
from proxy_operator.adapters.kube.errors import Status, error_of
from proxy_operator.domain.kinds import Kind
from proxy_operator.runtime.errors import ExpiredError, NotFoundError, UnavailableError
from proxy_operator.runtime.objects import ObjectList, T, WatchEvent, WatchEventType

PAGE: Final = 500
"""Objects in an answer, as kubectl and client-go ask for."""
_LISTS: Final = 3
"""Times that a list is begun anew because its next page has expired."""
_LINE_LIMIT: Final = 16 * 1024 * 1024
"""No object of etcd is nearly as large; more without an end of line is no watch."""


class WatchTimes(NamedTuple):
    """How long a watch may last, and how long it may be silent."""

    server: timedelta = timedelta(seconds=60)
    """The server ends the watch after this and up to half as long again; a new one follows."""
    slack: timedelta = timedelta(seconds=10)
    """A stream that is silent for so much longer is dead."""


class Scope(NamedTuple):
    """Which objects of a kind."""

    namespace: str | None = None
    labels: Mapping[str, str] = {}


class ListWatch:
    """Lists and watches through a client."""

    def __init__(self, client: KubeClient, times: WatchTimes | None = None) -> None:
        self._client = client
        self._times = times or WatchTimes()

    async def list(self, kind: Kind[T], scope: Scope) -> ObjectList[T]:
        """Return everything at one version."""
        for _ in range(_LISTS - 1):
            try:
                return await self._list(kind, scope)
            except ExpiredError:
                continue
        return await self._list(kind, scope)

    async def _list(self, kind: Kind[T], scope: Scope) -> ObjectList[T]:
        codec = Codec(kind)
        items: list[T] = []
        unreadable: list[str] = []
        token = ""
        while True:
            query = {**label_selector(scope.labels), "limit": str(PAGE)}
            if token:
                query["continue"] = token
            request = self._request(kind, scope, query)
            try:
                page = codec.page(await self._client.send(request))
            except NotFoundError as err:
                raise _not_served(kind) from err
            items += page.items
            unreadable += page.unreadable
            token = page.next
            if not token:
                return ObjectList(items, page.resource_version, tuple(unreadable))

    async def watch(
        self, kind: Kind[T], scope: Scope, resource_version: str
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Yield what follows that version, with a BOOKMARK as soon as the stream stands."""
        codec = Codec(kind)
        seconds = self._times.server.total_seconds() * random.uniform(1, 1.5)  # noqa: S311 - spreads load
        query = {
            **label_selector(scope.labels),
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(int(seconds)),
        }
        request = self._request(kind, scope, query)
        silent_for = timedelta(seconds=seconds) + self._times.slack
        try:
            async with self._client.stream(request, silent_for=silent_for) as content:
                yield WatchEvent(WatchEventType.BOOKMARK, None, resource_version)
                async for line in lines(content):
                    event = codec.event(line)
                    if isinstance(event, Status):
                        raise error_of(event, request.subject)
                    yield event
        except NotFoundError as err:
            raise _not_served(kind) from err

    def _request(self, kind: Kind[T], scope: Scope, query: Mapping[str, str]) -> Request:
        path = collection_path(kind.api_version, kind.plural, scope.namespace)
        return Request("GET", path, kind.plural, query)


async def lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a stream, without their end; an unfinished last one is dropped."""
    rest = bytearray()
    async for chunk in content.iter_any():
        rest += chunk
        if b"\n" not in chunk:
            if len(rest) > _LINE_LIMIT:
                raise UnavailableError("a line of the watch has no end")
            continue
        *whole, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        for line in whole:
            if line:
                yield line


def _not_served(kind: Kind[T]) -> UnavailableError:
    return UnavailableError(
        f"the API server does not serve {kind.plural} of {kind.api_version}: install the CRD"
    )
