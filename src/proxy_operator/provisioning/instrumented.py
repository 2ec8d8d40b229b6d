"""Measures every call of a provider. The one place that turns an error into a metric's label."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from proxy_operator.domain.instance import Instance
from proxy_operator.domain.proxy import ProxySpec
from proxy_operator.provisioning.contract import CreateRequest, InstanceList, Provider
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    PermanentProviderError,
    QuotaExceededError,
)
from proxy_operator.provisioning.ports import Recorder
from proxy_operator.runtime.clock import Clock

T = TypeVar("T")


class CallResult(StrEnum):
    """How a call ended."""

    SUCCESS = "success"
    NOT_FOUND = "not_found"
    QUOTA = "quota"
    PERMANENT = "permanent"
    """The surroundings count here too: only a person can change the outcome."""
    TRANSIENT = "transient"
    """Anything unforeseen counts here too, and a call that was cut off."""


def result_of(error: BaseException) -> CallResult:
    """Return the label for what a call raised."""
    match error:
        case InstanceNotFoundError():
            return CallResult.NOT_FOUND
        case QuotaExceededError():
            return CallResult.QUOTA
        case PermanentProviderError() | EnvironmentProviderError():
            return CallResult.PERMANENT
        case _:
            return CallResult.TRANSIENT


class InstrumentedProvider:
    """Counts and times each call of the contract; changes nothing."""

    def __init__(self, inner: Provider, name: str, recorder: Recorder, clock: Clock) -> None:
        self._inner = inner
        self._name = name
        self._recorder = recorder
        self._clock = clock

    @property
    def appears_within(self) -> timedelta:
        return self._inner.appears_within

    def placements(self, spec: ProxySpec) -> tuple[str, ...]:
        return self._inner.placements(spec)

    def provider_id(self, *, namespace: str, name: str, zone: str) -> str:
        return self._inner.provider_id(namespace=namespace, name=name, zone=zone)

    async def create(self, request: CreateRequest) -> str:
        return await self._measure("create", lambda: self._inner.create(request))

    async def get(self, provider_id: str) -> Instance:
        return await self._measure("get", lambda: self._inner.get(provider_id))

    async def delete(self, provider_id: str) -> None:
        await self._measure("delete", lambda: self._inner.delete(provider_id))

    async def list_by_tag(self) -> InstanceList:
        return await self._measure("list_by_tag", self._inner.list_by_tag)

    async def _measure(self, op: str, call: Callable[[], Awaitable[T]]) -> T:
        started = self._clock.monotonic()
        result = CallResult.SUCCESS
        try:
            return await call()
        except (Exception, asyncio.CancelledError) as error:
            result = result_of(error)
            raise
        finally:
            seconds = self._clock.monotonic() - started
            self._recorder.provider_called(self._name, op, result, seconds)
