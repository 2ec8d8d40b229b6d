"""An informer of the operator, run inside the test behind a network that fails."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final, Generic

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.adapters.kube.client import KubeClient
from proxy_operator.adapters.kube.listwatch import WatchTimes
from proxy_operator.adapters.kube.object_client import KubeObjectClient
from proxy_operator.adapters.kube.sources import discover_access
from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.informer import Informer
from proxy_operator.runtime.objects import ObjectKey, T, key_of
from proxy_operator.runtime.store import StoreEvent
from tests.integration.replicas import ClusterSite

BRIEF: Final = WatchTimes(server=timedelta(seconds=2), slack=timedelta(seconds=1))
LONGEST_SILENCE: Final = 2 * 1.5 + 1
"""Seconds after which a watch of BRIEF times is known to be dead."""


class Mirror(Generic[T]):
    """What the informer told its handlers, applied in order."""

    def __init__(self, informer: Informer[T]) -> None:
        self.informer = informer
        self.objects: dict[ObjectKey, T] = {}
        self.deleted: list[str] = []
        informer.store.add_handler(self._handle)

    def versions(self) -> dict[str, tuple[str, str]]:
        """Return UID and version of each object by its name, after `_handle` has seen them all."""
        stored = {key_of(obj): obj for obj in self.informer.store.list()}
        assert stored == self.objects
        return {
            key.name: (obj.metadata.uid, obj.metadata.resource_version)
            for key, obj in stored.items()
        }

    def _handle(self, event: StoreEvent[T]) -> None:
        if event.new is not None:
            key = key_of(event.new)
            assert self.objects.get(key) is event.old
            self.objects[key] = event.new
        elif event.old is not None:
            self.deleted.append(event.old.metadata.name)
            del self.objects[key_of(event.old)]


@asynccontextmanager
async def mirrored(
    kubeconfig: Path, kind: type[T], namespace: str, times: WatchTimes | None = None
) -> AsyncIterator[Mirror[T]]:
    """Yield a mirror of a namespace's objects that has synced."""
    clock = SystemClock()
    async with KubeClient(discover_access(kubeconfig, None, {}, clock)) as client:
        objects = KubeObjectClient(client, Admission(), times)
        informer = Informer(objects, kind, clock=clock, namespace=namespace)
        mirror = Mirror(informer)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(informer.run())
            await informer.wait_for_sync()
            yield mirror
            running.cancel()


def is_current(site: ClusterSite, mirror: Mirror[Proxy]) -> bool:
    """Tell whether the mirror shows what a direct list does."""
    return mirror.versions() == {
        proxy["metadata"]["name"]: (
            proxy["metadata"]["uid"],
            proxy["metadata"]["resourceVersion"],
        )
        for proxy in site.proxies()
    }


async def until(question: Callable[[], bool], *, within: float) -> None:
    """Wait for a state of the world."""
    async with asyncio.timeout(within):
        while not question():  # noqa: ASYNC110 - the world sends no events
            await asyncio.sleep(0.02)
