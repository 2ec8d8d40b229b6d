"""The provider `local`: proxy processes on this machine.

A rule a visitor must keep: nothing here blocks the loop; the work is done by `Instances`, in
threads. A deletion is asked for and never waited for: every later `get` carries it on.
"""

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

from proxy_operator.adapters.providers.local import manifests
from proxy_operator.adapters.providers.local.instances import Instances
from proxy_operator.domain.instance import Instance
from proxy_operator.domain.proxy import ProxySpec
from proxy_operator.provisioning.contract import CreateRequest, InstanceList
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    TransientProviderError,
)
from proxy_operator.runtime.clock import Clock

T = TypeVar("T")

APPEARS_WITHIN: Final = timedelta(seconds=5)
"""A create dies with its operator, and one that its caller gave up makes nothing any more: the
margin is for the single rename that may just be under way."""
_SURROUNDINGS: Final = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.EEXIST,
        errno.ENOSPC,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
    }
)


class LocalProvider:
    """Instances are directories below `root`; their processes listen on `bind`."""

    def __init__(self, root: Path, *, bind: str, cluster_id: str, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._instances = Instances(root, bind=bind, cluster_id=cluster_id, clock=clock)

    @property
    def account(self) -> str:
        return ""

    @property
    def appears_within(self) -> timedelta:
        return APPEARS_WITHIN

    @property
    def asks_again_after(self) -> tuple[timedelta, ...]:
        return ()  # a create is answered once it is known what came of it

    def placements(self, spec: ProxySpec) -> tuple[str, ...]:  # noqa: ARG002 - there is one place
        return ("",)

    def provider_id(self, *, namespace: str, name: str, zone: str) -> str:  # noqa: ARG002 - names are unique here
        return manifests.provider_id_of(name)

    async def check(self, request: CreateRequest) -> None:
        await self._in_thread(lambda: self._instances.check(request))

    async def create(self, request: CreateRequest) -> str:
        given_up = threading.Event()
        try:
            await self._in_thread(lambda: self._instances.create(request, given_up))
        finally:
            given_up.set()
        return manifests.provider_id_of(request.name)

    async def get(self, provider_id: str) -> Instance:
        name = manifests.name_of(provider_id)
        instance = await self._in_thread(lambda: self._instances.observe(name)) if name else None
        if instance is None:
            raise InstanceNotFoundError(f"there is no instance {provider_id}")
        return instance

    async def delete(self, provider_id: str) -> None:
        name = manifests.name_of(provider_id)
        if name is None:
            return
        await self._in_thread(lambda: self._instances.end(name))

    async def list_by_tag(self) -> InstanceList:
        return await self._in_thread(self._instances.list_ours)

    async def list_all(self) -> InstanceList:
        """Do what `provisioning.contract.Surveyor` promises."""
        return await self._in_thread(self._instances.list_all)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        """Run a blocking call off the loop; what the machine says becomes a ProviderError."""
        try:
            return await asyncio.to_thread(call)
        except OSError as err:
            reason = f"local instances in {self._root}: {os.strerror(err.errno or 0)}"
            if err.errno in _SURROUNDINGS:
                raise EnvironmentProviderError(reason) from err
            raise TransientProviderError(reason) from err
