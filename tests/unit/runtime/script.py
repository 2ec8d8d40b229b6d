"""A lister and watcher that plays a script: every call gets the next answer written for it."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.objects import ObjectKey, ObjectList, WatchEvent, WatchEventType
from tests.builders import a_proxy

Step = WatchEvent[Any] | Exception | float
"""An event, an error, or a silence in seconds."""

HANG = 1e9


def an_object(name: str = "a", version: int = 1, uid: str = "", **meta: Any) -> Proxy:
    return a_proxy(
        name, meta={"uid": uid or f"uid-{name}", "resource_version": str(version), **meta}
    )


def a_list(version: int, *objects: Proxy) -> ObjectList[Any]:
    return ObjectList([*objects], str(version))


def added(obj: Proxy) -> WatchEvent[Any]:
    return WatchEvent(WatchEventType.ADDED, obj, obj.metadata.resource_version)


def modified(obj: Proxy) -> WatchEvent[Any]:
    return WatchEvent(WatchEventType.MODIFIED, obj, obj.metadata.resource_version)


def deleted(obj: Proxy, version: int) -> WatchEvent[Any]:
    return WatchEvent(WatchEventType.DELETED, obj, str(version))


def bookmark(version: int) -> WatchEvent[Any]:
    return WatchEvent(WatchEventType.BOOKMARK, None, str(version))


class Script:
    """Lists and streams in the order they were written; the last list repeats, then watches hang.

    A list may be a future, to let the test do something while it is under way.
    """

    def __init__(self, *lists: Any, streams: tuple[tuple[Step, ...], ...] = ()) -> None:
        self.lists = deque(lists)
        self.streams = deque(streams)
        self.calls: list[tuple[float, str]] = []
        """Moment of every call, and `list` or `watch VERSION`."""
        self.open_streams = 0

    async def get(self, kind: type[Any], key: ObjectKey) -> Any:
        raise NotImplementedError

    async def list(
        self,
        kind: type[Any],
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ObjectList[Any]:
        self._note("list")
        answer = self.lists.popleft() if len(self.lists) > 1 else self.lists[0]
        if isinstance(answer, asyncio.Future):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, ObjectList)
        return answer

    async def watch(
        self,
        kind: type[Any],
        resource_version: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[WatchEvent[Any], None]:
        self._note(f"watch {resource_version}")
        self.open_streams += 1
        try:
            for step in self.streams.popleft() if self.streams else (HANG,):
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, WatchEvent):
                    yield step
                else:
                    await asyncio.sleep(step)
        finally:
            self.open_streams -= 1

    def _note(self, call: str) -> None:
        self.calls.append((asyncio.get_running_loop().time(), call))
