"""Measures every call of a provider. The one place that turns an error into a metric's label."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TypeVar

from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.decorator import DecoratedProvider
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


class InstrumentedProvider(DecoratedProvider):
    """Counts and times each call of the contract; changes nothing."""

    def __init__(self, inner: Provider, name: str, recorder: Recorder, clock: Clock) -> None:
        super().__init__(inner)
        self._name = name
        self._recorder = recorder
        self._clock = clock

    async def around(self, op: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make the call, and record how it ended and how long it took."""
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
