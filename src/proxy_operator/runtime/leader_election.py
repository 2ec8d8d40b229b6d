"""Who may act: of several processes on the same objects, one at a time."""

import asyncio
from typing import Protocol


class LeadershipLostError(Exception):
    """Another process may act from now on: this one stops acting at once and exits."""


class Elector(Protocol):
    """Takes part in one election for as long as the process lives."""

    async def acquire(self) -> None:
        """Return when this process leads. Waits out whatever keeps it from asking."""

    async def hold(self) -> None:
        """Keep leading until cancelled. LeadershipLostError when that failed."""

    async def release(self) -> None:
        """Give leadership up, so that a successor need not wait. Harmless when not leading."""


class AlwaysLeader:
    """For a process that holds a lock on its objects for as long as it lives."""

    async def acquire(self) -> None:
        """Lead."""

    async def hold(self) -> None:
        """Lead until cancelled."""
        await asyncio.Event().wait()

    async def release(self) -> None:
        """Do nothing: the lock goes with the process."""
