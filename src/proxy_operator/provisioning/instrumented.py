"""Measures every call of a provider. The one place that turns an error into a metric's label."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final, TypeVar

from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.decorator import DecoratedProvider
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    OwnLimitError,
    PermanentProviderError,
    QuotaExceededError,
)
from proxy_operator.provisioning.ports import Recorder
from proxy_operator.runtime.clock import Clock

T = TypeVar("T")

OPERATIONS: Final = ("check", "create", "get", "delete", "list_by_tag")
"""The calls of the contract."""


class CallResult(StrEnum):
    """How a call ended."""

    SUCCESS = "success"
    NOT_FOUND = "not_found"
    QUOTA = "quota"
    OWN_LIMIT = "own_limit"
    """The operator's own limit: the provider was not asked."""
    PERMANENT = "permanent"
    """The surroundings count here too: only a person can change the outcome."""
    TRANSIENT = "transient"
    """Anything unforeseen counts here too, and a call that was cut off."""


def result_of(error: BaseException) -> CallResult:
    """Return the label for what a call raised."""
    match error:
        case InstanceNotFoundError():
            return CallResult.NOT_FOUND
        case OwnLimitError():
            return CallResult.OWN_LIMIT
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
        recorder.provider_served(name)

    async def around(self, op: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make the call, and record how it ended and how long it took."""
        started = self._clock.monotonic()
        result = CallResult.SUCCESS
        try:
            return await call()
        except (Exception, asyncio.CancelledError) as error:
            result = result_of(error)
            if isinstance(error, OwnLimitError):
                self._recorder.limit_reached(self._name, error.limit)
            raise
        finally:
            seconds = self._clock.monotonic() - started
            self._recorder.provider_called(self._name, op, result, seconds)
