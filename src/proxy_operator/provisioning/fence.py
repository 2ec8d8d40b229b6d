"""The fence: a provider mutation happens only while this process may act."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.decorator import DecoratedProvider

T = TypeVar("T")

_MUTATIONS: Final = frozenset({"create", "delete"})


class Fence(Protocol):
    """Knows until when this process leads."""

    @property
    def is_open(self) -> bool:
        """Tell whether this process may act now."""

    def check(self) -> None:
        """Return when a mutation may be sent now; FencedError when it may not."""


class OpenFence:
    """The fence of a process that holds its lock for as long as it lives."""

    @property
    def is_open(self) -> bool:
        """Always."""
        return True

    def check(self) -> None:
        """Allow everything."""


class FencedProvider(DecoratedProvider):
    """Checks the fence just before every call that changes something."""

    def __init__(self, inner: Provider, fence: Fence) -> None:
        super().__init__(inner)
        self._fence = fence

    async def around(self, op: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make the call, a mutation only while the fence allows it."""
        if op in _MUTATIONS:
            self._fence.check()
        return await call()
