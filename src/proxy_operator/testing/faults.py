"""Faults at the borders of a process: every call to the store or a provider passes a gate.

One gate is one process. A plan says what happens to its n-th call; a process that was cut never
gets an answer again and changes nothing any more, as one that was killed.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from datetime import timedelta
from enum import Enum, auto
from typing import Any, TypeVar

from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.decorator import DecoratedProvider
from proxy_operator.provisioning.errors import TransientProviderError
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.runtime.objects import (
    Applied,
    MetadataPatch,
    ObjectClient,
    ObjectKey,
    ObjectList,
    Preconditions,
    T,
    WatchEvent,
)

R = TypeVar("R")


class Fault(Enum):
    """What happens to a call."""

    FAIL = auto()
    """It does nothing and raises."""
    LOSE_REPLY = auto()
    """It takes effect and raises."""
    DELAY = auto()
    """It takes effect and answers late."""
    CUT_BEFORE = auto()
    """The process dies just before it."""
    CUT_AFTER = auto()
    """The process dies when it has taken effect, before the answer."""


class Gate:
    """What every call of one process passes."""

    def __init__(
        self, plan: Mapping[int, Fault] | None = None, delay: timedelta = timedelta(seconds=20)
    ) -> None:
        """`plan` maps the number of a call, from 0, to its fault."""
        self._plan = dict(plan or {})
        self._delay = delay
        self.calls: list[str] = []
        """Names of the calls so far, in order."""
        self.cut = asyncio.Event()
        """Set when the process has died."""

    async def pass_through(
        self, name: str, call: Callable[[], Awaitable[R]], error: Exception
    ) -> R:
        """Make the call, unless the plan has something else for it."""
        if self.cut.is_set():
            await self._die()
        fault = self._plan.get(len(self.calls))
        self.calls.append(name)
        if fault is Fault.CUT_BEFORE:
            await self._die()
        if fault is Fault.FAIL:
            raise error
        answer = await call()
        if fault is Fault.CUT_AFTER or self.cut.is_set():
            await self._die()
        if fault is Fault.LOSE_REPLY:
            raise error
        if fault is Fault.DELAY:
            await asyncio.sleep(self._delay.total_seconds())
        return answer

    async def _die(self) -> None:
        self.cut.set()
        await asyncio.get_running_loop().create_future()


class FaultyClient:
    """An `ObjectClient` behind a gate. Watching is not gated: it changes nothing."""

    def __init__(self, inner: ObjectClient, gate: Gate) -> None:
        self._inner = inner
        self._gate = gate

    async def _pass(self, name: str, call: Callable[[], Awaitable[R]]) -> R:
        return await self._gate.pass_through(name, call, UnavailableError("the store is away"))

    async def get(self, kind: type[T], key: ObjectKey) -> T:
        return await self._pass("get", lambda: self._inner.get(kind, key))

    async def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ObjectList[T]:
        return await self._pass(
            "list", lambda: self._inner.list(kind, namespace=namespace, labels=labels)
        )

    def watch(
        self,
        kind: type[T],
        resource_version: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        return self._inner.watch(kind, resource_version, namespace=namespace, labels=labels)

    async def create(self, obj: T) -> T:
        return await self._pass("create", lambda: self._inner.create(obj))

    async def patch_metadata(
        self, kind: type[T], key: ObjectKey, preconditions: Preconditions, patch: MetadataPatch
    ) -> T:
        return await self._pass(
            "patch_metadata", lambda: self._inner.patch_metadata(kind, key, preconditions, patch)
        )

    async def patch_status(self, obj: T) -> T:
        return await self._pass("patch_status", lambda: self._inner.patch_status(obj))

    async def apply(self, manifest: Mapping[str, Any]) -> Applied:
        return await self._pass("apply", lambda: self._inner.apply(manifest))

    async def delete(
        self, kind: type[T], key: ObjectKey, preconditions: Preconditions | None = None
    ) -> None:
        await self._pass("delete", lambda: self._inner.delete(kind, key, preconditions))


class FaultyProvider(DecoratedProvider):
    """A `Provider` behind a gate."""

    def __init__(self, inner: Provider, gate: Gate) -> None:
        super().__init__(inner)
        self._gate = gate

    async def around(self, op: str, call: Callable[[], Awaitable[R]]) -> R:
        """Let the call pass the gate."""
        error = TransientProviderError("no answer")
        return await self._gate.pass_through(f"provider.{op}", call, error)
