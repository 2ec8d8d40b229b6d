"""The fence: a provider mutation happens only while this process may act."""

from datetime import timedelta
from typing import Protocol

from proxy_operator.domain.instance import Instance
from proxy_operator.domain.proxy import ProxySpec
from proxy_operator.provisioning.contract import CreateRequest, InstanceList, Provider


class Fence(Protocol):
    """Knows until when this process leads."""

    def check(self) -> None:
        """Return when a mutation may be sent now; FencedError when it may not."""


class OpenFence:
    """The fence of a process that holds its lock for as long as it lives."""

    def check(self) -> None:
        """Allow everything."""


class FencedProvider:
    """Checks the fence just before every call that changes something."""

    def __init__(self, inner: Provider, fence: Fence) -> None:
        self._inner = inner
        self._fence = fence

    @property
    def appears_within(self) -> timedelta:
        return self._inner.appears_within

    def placements(self, spec: ProxySpec) -> tuple[str, ...]:
        return self._inner.placements(spec)

    def provider_id(self, *, namespace: str, name: str, zone: str) -> str:
        return self._inner.provider_id(namespace=namespace, name=name, zone=zone)

    async def create(self, request: CreateRequest) -> str:
        self._fence.check()
        return await self._inner.create(request)

    async def get(self, provider_id: str) -> Instance:
        return await self._inner.get(provider_id)

    async def delete(self, provider_id: str) -> None:
        self._fence.check()
        await self._inner.delete(provider_id)

    async def list_by_tag(self) -> InstanceList:
        return await self._inner.list_by_tag()
