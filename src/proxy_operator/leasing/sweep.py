"""Frees ended leases and cooldowns while nobody calls. Correctness never depends on it."""

import asyncio
from datetime import timedelta
from typing import Final, Protocol

SWEEP_INTERVAL: Final = timedelta(seconds=30)


class Sweepable(Protocol):
    """Something with leftovers."""

    def sweep(self) -> None:
        """Free what time has ended."""


class Sweeper:
    """Sweeps a store for as long as it runs."""

    def __init__(self, store: Sweepable, interval: timedelta = SWEEP_INTERVAL) -> None:
        self._store = store
        self._interval = interval

    async def run(self) -> None:
        """Sweep at every interval until cancelled."""
        while True:
            await asyncio.sleep(self._interval.total_seconds())
            self._store.sweep()
