"""How long this process may act as the leader.

The rule: a term is counted from the moment a renewal was *asked for*, on the clock that counts
suspended time too. Others count from when they see the renewal, which is later, and for longer:
so a term has ended before anybody else's begins, whatever was late, lost or asleep.
"""

import math
from collections.abc import Callable
from typing import Protocol

from proxy_operator.runtime.clock import boottime
from proxy_operator.runtime.election import Timing


class Watch(Protocol):
    """Ends the process when it goes on for too long."""

    def arm(self, until: float) -> None:
        """End the process at that boot time, unless armed anew or disarmed before."""

    def disarm(self) -> None:
        """Let the process live. Harmless when not armed."""


class Term:
    """Closed at first. Reading it is safe in any thread."""

    def __init__(self, timing: Timing, watch: Watch, clock: Callable[[], float] = boottime) -> None:
        """`clock` gives seconds since boot, suspended time included."""
        self.timing = timing
        self._watch = watch
        self._clock = clock
        self._ends_at = -math.inf

    def now(self) -> float:
        """Return the boot time, to be passed to `extend`."""
        return self._clock()

    @property
    def is_open(self) -> bool:
        """Tell whether this process may act now."""
        return self._clock() < self._ends_at

    def remaining(self) -> float:
        """Return the seconds for which it may still act."""
        return max(0.0, self._ends_at - self._clock())

    def extend(self, asked_at: float) -> None:
        """Begin or prolong the term by a renewal that succeeded and was asked for at `asked_at`.

        One that was on its way for longer than the renew deadline comes too late and is no news.
        """
        ends_at = asked_at + self.timing.renew_deadline.total_seconds()
        if ends_at <= self._clock():
            return
        self._ends_at = ends_at
        self._watch.arm(asked_at + self.timing.lease_duration.total_seconds())

    def lose(self) -> None:
        """Act no more. What still works must end before the lease does, or the watch ends it."""
        self._ends_at = -math.inf

    def close(self) -> None:
        """Act no more; nothing works any longer that the watch would have to end."""
        self._ends_at = -math.inf
        self._watch.disarm()
