"""Bounds every call of a provider, so that a provider that hangs holds no worker for ever."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from proxy_operator.domain.duration import format_duration
from proxy_operator.domain.instance import Instance
from proxy_operator.domain.proxy import ProxySpec
from proxy_operator.provisioning.contract import CreateRequest, InstanceList, Provider
from proxy_operator.provisioning.errors import TransientProviderError

T = TypeVar("T")


class TimedProvider:
    """Turns a call that takes longer than `limit` into a TransientProviderError.

    A create that was cut off may still come into being: that is what `appears_within` of the
    provider has to cover.
    """

    def __init__(self, inner: Provider, limit: timedelta) -> None:
        self._inner = inner
        self._limit = limit

    @property
    def appears_within(self) -> timedelta:
        return self._inner.appears_within

    def placements(self, spec: ProxySpec) -> tuple[str, ...]:
        return self._inner.placements(spec)

    def provider_id(self, *, namespace: str, name: str, zone: str) -> str:
        return self._inner.provider_id(namespace=namespace, name=name, zone=zone)

    async def create(self, request: CreateRequest) -> str:
        return await self._bound("create", lambda: self._inner.create(request))

    async def get(self, provider_id: str) -> Instance:
        return await self._bound("get", lambda: self._inner.get(provider_id))

    async def delete(self, provider_id: str) -> None:
        await self._bound("delete", lambda: self._inner.delete(provider_id))

    async def list_by_tag(self) -> InstanceList:
        return await self._bound("list_by_tag", self._inner.list_by_tag)

    async def _bound(self, op: str, call: Callable[[], Awaitable[T]]) -> T:
        scope = asyncio.timeout(self._limit.total_seconds())
        try:
            async with scope:
                return await call()
        except TimeoutError as err:
            if not scope.expired():
                raise  # the provider's own, which it should have mapped
            raise TransientProviderError(
                f"the provider did not answer {op} within {format_duration(self._limit)}"
            ) from err
