"""What will happen, in the order of its moments. Nothing happens by itself: somebody asks."""

import heapq
import itertools
from collections.abc import Callable
from datetime import timedelta

from proxy_operator.runtime.clock import Clock

Deed = Callable[[float], None]
"""Something to do at a moment, which it is given."""


class Timeline:
    """Deeds that are due at moments, in seconds of the clock's monotonic reading."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: list[tuple[float, int, Deed]] = []
        self._numbers = itertools.count()
        self._moment: float | None = None
        """The moment of the deed that is being done: to it, that is now."""

    def at(self, moment: float, deed: Deed) -> None:
        """Have this done at that moment. Equal moments keep their order."""
        heapq.heappush(self._due, (moment, next(self._numbers), deed))

    def now(self) -> float:
        """Do all that is due by now, each at its own moment, and return now."""
        if self._moment is not None:
            return self._moment
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            self._moment, _, deed = heapq.heappop(self._due)
            try:
                deed(self._moment)
            finally:
                self._moment = None
        return now

    def stamp(self, moment: float) -> str:
        """Return a moment as the API writes it: RFC 3339 with milliseconds."""
        wall = self._clock.now() + timedelta(seconds=moment - self._clock.monotonic())
        return wall.isoformat(timespec="milliseconds")
