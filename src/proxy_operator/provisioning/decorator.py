"""What all decorators of a Provider share: the facts pass through, every call goes by one place."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from proxy_operator.domain.instance import Instance
from proxy_operator.domain.proxy import ProxySpec
from proxy_operator.provisioning.contract import CreateRequest, InstanceList, Provider

T = TypeVar("T")


class DecoratedProvider(ABC):
    """A Provider around another one: a subclass says in `around` what it adds to each call."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    @abstractmethod
    async def around(self, op: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make the call that `op` names, as the contract does (`list_by_tag`), or raise."""

    @property
    def account(self) -> str:
        return self._inner.account

    @property
    def appears_within(self) -> timedelta:
        return self._inner.appears_within

    @property
    def asks_again_after(self) -> tuple[timedelta, ...]:
        return self._inner.asks_again_after

    def placements(self, spec: ProxySpec) -> tuple[str, ...]:
        return self._inner.placements(spec)

    def provider_id(self, *, namespace: str, name: str, zone: str) -> str:
        return self._inner.provider_id(namespace=namespace, name=name, zone=zone)

    async def check(self, request: CreateRequest) -> None:
        await self.around("check", lambda: self._inner.check(request))

    async def create(self, request: CreateRequest) -> str:
        return await self.around("create", lambda: self._inner.create(request))

    async def get(self, provider_id: str) -> Instance:
        return await self.around("get", lambda: self._inner.get(provider_id))

    async def delete(self, provider_id: str) -> None:
        await self.around("delete", lambda: self._inner.delete(provider_id))

    async def list_by_tag(self) -> InstanceList:
        return await self.around("list_by_tag", self._inner.list_by_tag)
