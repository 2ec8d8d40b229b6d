"""The cost brake: an upper bound on instances and on how fast they are made, at one provider.

A rule a visitor must keep: what is admitted is counted before it is asked for, and an admission is
judged by a list made for it; only a refusal may come from memory.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from typing import Final, NamedTuple, TypeVar

from proxy_operator.domain.instance import Instance
from proxy_operator.domain.names import UID_LABEL
from proxy_operator.provisioning.contract import CreateRequest, Provider
from proxy_operator.provisioning.decorator import DecoratedProvider
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    OwnLimit,
    OwnLimitError,
    PermanentProviderError,
    QuotaExceededError,
)
from proxy_operator.runtime.clock import Clock

T = TypeVar("T")

_WINDOW_S: Final = 60.0
_LONGEST_WAIT_S: Final = 600.0
_FULL_FOR: Final = timedelta(seconds=30)
"""How long a list that showed no room is believed."""


class BrakeLimits(NamedTuple):
    """What an operator may do at each provider; None is no limit."""

    max_instances: int | None = None
    max_creates_per_minute: int | None = None

    @property
    def is_any(self) -> bool:
        """There is something to hold to."""
        return self.max_instances is not None or self.max_creates_per_minute is not None


class _Admission(NamedTuple):
    """A create that was let through."""

    at: float
    uid: str
    is_seen: bool = False
    """Its instance was found: when it is not, it has gone."""


class BrakedProvider(DecoratedProvider):
    """Refuses, with OwnLimitError, creates beyond the operator's own limits.

    Taking over an instance that exists, and asking again for a create that was accepted, is no
    creation.
    """

    def __init__(self, inner: Provider, limits: BrakeLimits, clock: Clock) -> None:
        super().__init__(inner)
        self._limits = limits
        self._clock = clock
        self._deciding = asyncio.Lock()
        self._listed: dict[str, str] = {}
        """The instances of the last list: UID label by provider id."""
        self._admitted: dict[str, _Admission] = {}
        """Each create that no list shows yet, by provider id."""
        self._recent: list[float] = []
        """When creates of the last minute were admitted."""
        self._promised = 0.0
        self._full_until = 0.0

    async def around(self, op: str, call: Callable[[], Awaitable[T]]) -> T:  # noqa: ARG002 - every call passes
        """Make the call; what is limited is limited before it comes here."""
        return await call()

    async def check(self, request: CreateRequest) -> None:
        """Say also what would be refused here, before an instance makes room for its successor."""
        await super().check(request)
        async with self._deciding:
            if not self._is_turn():
                raise self._too_fast(None)
            # Its present instance, in whatever zone, is gone before the next one is made.
            await self._require_room(request, own={request.uid})

    async def get(self, provider_id: str) -> Instance:
        """Return the instance; one that was seen and is found gone has left its place."""
        try:
            instance = await super().get(provider_id)
        except InstanceNotFoundError:
            admitted = self._admitted.get(provider_id)
            if provider_id in self._listed or (admitted is not None and admitted.is_seen):
                self._admitted.pop(provider_id, None)
                self._listed.pop(provider_id, None)
                self._full_until = 0.0
            raise
        if provider_id in self._admitted:
            # Counted on as admitted: a list that is under way may be too old to show it.
            self._admitted[provider_id] = self._admitted[provider_id]._replace(is_seen=True)
        return instance

    async def create(self, request: CreateRequest) -> str:
        """Create unless a limit is reached. OwnLimitError says which."""
        provider_id = self._id_of(request)
        if not request.is_repeated:
            await self._admit(request)
        try:
            return await super().create(request)
        except (QuotaExceededError, PermanentProviderError, EnvironmentProviderError):
            self._take_back(provider_id)
            raise

    def _id_of(self, request: CreateRequest) -> str:
        return self.provider_id(namespace=request.namespace, name=request.name, zone=request.zone)

    async def _admit(self, request: CreateRequest) -> None:
        """Count a create, unless the instance exists, so that nothing will be made."""
        provider_id = self._id_of(request)
        # One at a time: two that saw the same last place must not both take it.
        async with self._deciding:
            with contextlib.suppress(InstanceNotFoundError):
                await self._inner.get(provider_id)
                return
            self._require_turn()
            await self._require_room(request)
            now = self._clock.monotonic()
            self._admitted[provider_id] = _Admission(now, request.uid)
            self._recent.append(now)

    def _take_back(self, provider_id: str) -> None:
        """Count a create of which nothing came no longer."""
        admitted = self._admitted.pop(provider_id, None)
        if admitted is not None and admitted.at in self._recent:
            self._recent.remove(admitted.at)

    async def _require_room(
        self, request: CreateRequest, own: Collection[str] = frozenset()
    ) -> None:
        """Raise OwnLimitError when this instance, beside all others, is one too many.

        Instances made for the UIDs in `own` count as gone.
        """
        limit, now = self._limits.max_instances, self._clock.monotonic()
        if limit is None:
            return
        is_listed_now = now >= self._full_until or request.uid in self._listed.values()
        if is_listed_now:
            await self._list()
        known = {pid: one.uid for pid, one in self._admitted.items()} | self._listed
        others = {pid for pid, uid in known.items() if uid not in own}
        if len(others - {self._id_of(request)}) < limit:
            return
        if is_listed_now:
            # Only what a list said is believed for a while: refusals must not prolong each other.
            self._full_until = now + _FULL_FOR.total_seconds()
        raise OwnLimitError(OwnLimit.MAX_INSTANCES, limit)

    async def _list(self) -> None:
        found = await self._inner.list_by_tag()
        now, longest = self._clock.monotonic(), self._inner.appears_within.total_seconds()
        listed = {one.provider_id: one.labels.get(UID_LABEL, "") for one in found.items}
        # What an incomplete list does not show is still there for all we know.
        self._listed = listed if found.complete else {**self._listed, **listed}
        self._admitted = {
            pid: one
            for pid, one in self._admitted.items()
            if pid not in self._listed and now - one.at < longest
        }

    def _require_turn(self) -> None:
        """Raise OwnLimitError, with a turn of its own, for a create that is one too many."""
        if self._is_turn():
            return
        # Not all at once when the minute is over; and nobody waits long for those who gave up.
        now, limit = self._clock.monotonic(), self._limits.max_creates_per_minute or 1
        turn = max(self._recent[0] + _WINDOW_S, self._promised + _WINDOW_S / limit)
        self._promised = min(turn, now + _LONGEST_WAIT_S)
        raise self._too_fast(timedelta(seconds=self._promised - now))

    def _is_turn(self) -> bool:
        """Tell whether fewer than may be were made within the last minute."""
        limit, now = self._limits.max_creates_per_minute, self._clock.monotonic()
        self._recent = [at for at in self._recent if now - at < _WINDOW_S]
        return limit is None or len(self._recent) < limit

    def _too_fast(self, retry_after: timedelta | None) -> OwnLimitError:
        limit = self._limits.max_creates_per_minute
        return OwnLimitError(OwnLimit.MAX_CREATES_PER_MINUTE, limit, retry_after=retry_after)
