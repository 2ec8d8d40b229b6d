"""One list for all who only ask whether their instance still runs.

A list is believed when it says that an instance runs, and in nothing else: whatever it shows
otherwise, or does not show, is asked for by name.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.provisioning.contract import InstanceList
from proxy_operator.provisioning.errors import ProviderError
from proxy_operator.runtime.clock import Clock

logger = logging.getLogger(__name__)

MAX_AGE: Final = timedelta(seconds=20)
"""Three lists a minute, however many instances there are."""


class SharedListing:
    """The last list of instances, renewed when it is old and somebody asks."""

    def __init__(self, fetch: Callable[[], Awaitable[InstanceList]], clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = asyncio.Lock()
        self._asked_at = float("-inf")
        self._started_at = float("-inf")
        self._running: dict[str, Instance] = {}
        self._touched: dict[str, float] = {}

    def touch(self, provider_id: str) -> None:
        """Believe of this instance only lists that begin from now on."""
        self._touched[provider_id] = self._clock.monotonic()

    async def running(self, provider_id: str) -> Instance | None:
        """Return the instance if a list that is young enough shows it running.

        At most one list is under way, for all who ask; one that fails is not repeated at once.
        """
        async with self._lock:
            if self._clock.monotonic() - self._asked_at >= MAX_AGE.total_seconds():
                try:
                    await self.renew()
                except ProviderError as err:
                    logger.debug("no shared list of instances", extra={"error": str(err)})
        if self._clock.monotonic() - self._started_at >= 2 * MAX_AGE.total_seconds():
            return None
        if self._started_at <= self._touched.get(provider_id, float("-inf")):
            return None
        return self._running.get(provider_id)

    async def renew(self) -> InstanceList:
        """Ask for the list now, and keep what it says."""
        started_at = self._asked_at = self._clock.monotonic()
        found = await self._fetch()
        if started_at > self._started_at:
            self._started_at = started_at
            self._running = {
                one.provider_id: one for one in found.items if one.state is InstanceState.RUNNING
            }
            self._touched = {pid: at for pid, at in self._touched.items() if at >= started_at}
        return found
