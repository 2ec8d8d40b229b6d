"""Bounds every call of a provider, so that a provider that hangs holds no worker for ever."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from proxy_operator.domain.duration import format_duration
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.decorator import DecoratedProvider
from proxy_operator.provisioning.errors import TransientProviderError

T = TypeVar("T")


class TimedProvider(DecoratedProvider):
    """Turns a call that takes longer than `limit` into a TransientProviderError.

    A create that was cut off may still come into being: that is what `appears_within` of the
    provider has to cover.
    """

    def __init__(self, inner: Provider, limit: timedelta) -> None:
        super().__init__(inner)
        self._limit = limit

    async def around(self, op: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make the call, cut off at the limit."""
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
