"""An event loop whose time is a number: nobody waits, and whoever sleeps wakes in order."""

import asyncio
import selectors
from typing import Any, Final

_MOST_ROUNDS: Final = 20_000
"""Rounds of the loop at one moment, beyond which two parts keep each other busy."""


class _NeverWaits(selectors.SelectSelector):
    """Lets virtual time pass instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._rounds = 0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everything waits and nothing will ever happen")
        self._rounds = 0 if timeout > 0 else self._rounds + 1
        if self._rounds > _MOST_ROUNDS:
            raise RuntimeError(f"time stands still at {self.now:.3f} s: somebody never waits")
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """For code that touches no socket, file or thread."""

    def __init__(self) -> None:
        self._virtual = _NeverWaits()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._virtual.now
