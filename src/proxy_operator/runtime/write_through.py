"""The client for everyone who also reads from informers.

What a write returned is in the informer's store before the caller goes on, so no pass acts on a
state older than the operator's own last write. It is told as an echo there: who wrote it knows.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from proxy_operator.runtime.informer import Informer
from proxy_operator.runtime.objects import (
    Applied,
    MetadataPatch,
    Object,
    ObjectClient,
    ObjectKey,
    ObjectList,
    Preconditions,
    T,
    WatchEvent,
    key_of,
)


class WriteThrough:
    """An `ObjectClient`: reads are uncached, writes are merged into the informers."""

    def __init__(self, client: ObjectClient, informers: Mapping[type, Informer[Any]]) -> None:
        self._client = client
        self._informers = dict(informers)

    async def get(self, kind: type[T], key: ObjectKey) -> T:
        return await self._client.get(kind, key)

    async def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ObjectList[T]:
        return await self._client.list(kind, namespace=namespace, labels=labels)

    def watch(
        self,
        kind: type[T],
        resource_version: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        return self._client.watch(kind, resource_version, namespace=namespace, labels=labels)

    async def create(self, obj: T) -> T:
        stored = await self._client.create(obj)
        self._observe(stored)
        return stored

    async def patch_metadata(
        self, kind: type[T], key: ObjectKey, preconditions: Preconditions, patch: MetadataPatch
    ) -> T:
        informer = self._informers.get(kind)
        if informer is None:
            return await self._client.patch_metadata(kind, key, preconditions, patch)
        is_echo = _is_known(informer, key, preconditions)
        with informer.writing(key):
            stored = await self._client.patch_metadata(kind, key, preconditions, patch)
            meta = stored.metadata
            if meta.deletion_timestamp is not None and not meta.finalizers:
                # That was the last finalizer: the reply is the last state of something gone.
                informer.observe_deleted(key, meta.uid)
            else:
                informer.observe(stored, is_echo=is_echo)
        return stored

    async def patch_status(self, obj: T) -> T:
        informer, meta = self._informers.get(type(obj)), obj.metadata
        if informer is None:
            return await self._client.patch_status(obj)
        key = key_of(obj)
        is_echo = _is_known(informer, key, Preconditions(meta.uid, meta.resource_version))
        with informer.writing(key):
            stored = await self._client.patch_status(obj)
            informer.observe(stored, is_echo=is_echo)
        return stored

    async def apply(self, manifest: Mapping[str, Any]) -> Applied:
        applied = await self._client.apply(manifest)
        self._observe(applied.object)
        return applied

    async def delete(
        self, kind: type[T], key: ObjectKey, preconditions: Preconditions | None = None
    ) -> None:
        await self._client.delete(kind, key, preconditions)

    def _observe(self, obj: Object) -> None:
        if (informer := self._informers.get(type(obj))) is not None:
            informer.observe(obj)


def _is_known(informer: Informer[Any], key: ObjectKey, base: Preconditions) -> bool:
    """Tell whether the store has the very state that a write is based on.

    A write based on another state carries changes by others: called an echo, they would never
    wake the controller.
    """
    known = informer.store.get(key)
    return (
        known is not None
        and known.metadata.uid == base.uid
        and known.metadata.resource_version == base.resource_version
    )
