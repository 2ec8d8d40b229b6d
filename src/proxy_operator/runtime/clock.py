"""Where time comes from. Services take a `Clock`; nothing else reads one."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Two readings: one for people, one for deciding."""

    def now(self) -> datetime:
        """Return the wall clock in UTC. May jump; never subtract it from an earlier reading."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment. Never jumps, stops while suspended."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class LoopClock:
    """The running loop's time, so that a loop on virtual time moves this clock too."""

    def __init__(self, epoch: datetime) -> None:
        self._epoch = epoch

    def now(self) -> datetime:
        return self._epoch + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def boottime() -> float:
    """Seconds since boot, suspended time included (CLOCK_BOOTTIME of clock_gettime(2)).

    The clock of the fence: a machine that slept past its deadline must notice.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)
