"""When each proxy is due. Pure: moments are seconds of a monotonic clock given by the caller.

Every known uid is due at one moment or is out being probed; finding the next one costs O(log n),
never a scan of the fleet.
"""

import hashlib
import heapq
import itertools
from datetime import timedelta
from typing import Final, NamedTuple

# Newcomers start this far apart, so that a hundred proxies applied at once do not knock on one
# target's door together ...
SPACING: Final = 0.05
# ... until those already waiting reach this far ahead: a fleet of thousands must not wait minutes.
HORIZON: Final = 5.0
CROWDED_SPACING: Final = 0.002

# A proxy without a verdict is probed again so soon: a new one that does not work is known within
# seconds, not after failureThreshold intervals.
UNJUDGED: Final = timedelta(seconds=2)


class Due(NamedTuple):
    """A proxy whose moment has come."""

    uid: str
    at: float


class Schedule:
    """A heap of due moments. Entries that were moved or removed are skipped when they surface."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str]] = []
        self._due: dict[str, tuple[float, int]] = {}
        self._sequence = itertools.count()
        self._next_slot = 0.0

    def __len__(self) -> int:
        return len(self._due)

    def put(self, uid: str, at: float) -> None:
        """Make a proxy due then, in place of any earlier arrangement."""
        entry = (at, next(self._sequence))
        self._due[uid] = entry
        heapq.heappush(self._heap, (*entry, uid))
        if len(self._heap) > 2 * len(self._due) + 64:
            self._heap = [(*entry, uid) for uid, entry in self._due.items()]
            heapq.heapify(self._heap)

    def remove(self, uid: str) -> None:
        """Forget a proxy; unknown ones are ignored."""
        self._due.pop(uid, None)

    def due_at(self, uid: str) -> float | None:
        """Return when a proxy is due, or None when it is not in the schedule."""
        entry = self._due.get(uid)
        return entry[0] if entry else None

    def next_at(self) -> float | None:
        """Return the earliest due moment, or None when nothing is scheduled."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> Due | None:
        """Take out the proxy that has been due longest, or None when none is due yet."""
        self._drop_stale()
        if not self._heap or self._heap[0][0] > now:
            return None
        at, _, uid = heapq.heappop(self._heap)
        del self._due[uid]
        return Due(uid, at)

    def newcomer_slot(self, now: float) -> float:
        """Return when a proxy that should be probed at once may start: now, unless many ask."""
        slot = max(now, self._next_slot)
        self._next_slot = slot + (SPACING if slot - now < HORIZON else CROWDED_SPACING)
        return slot

    def _drop_stale(self) -> None:
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)


def jitter(uid: str) -> float:
    """Return this proxy's place in any interval, from 0 up to 1: even over a fleet, never moving.

    Drawn from the UID rather than from chance, so a restart does not bunch probes together.
    """
    return int.from_bytes(hashlib.blake2b(uid.encode(), digest_size=7).digest()) / 2**56


def following(due_at: float, now: float, interval: timedelta) -> float:
    """Return the next beat after `now` of the rhythm that `due_at` belongs to.

    A late probe does not shift the rhythm; beats missed meanwhile are left out, not made up for.
    """
    seconds = interval.total_seconds()
    missed = max(0, int((now - due_at) // seconds))
    return due_at + seconds * (missed + 1)


def second(due_at: float, uid: str, interval: timedelta) -> float:
    """Return when a newcomer is due again: half an interval to one and a half later.

    Newcomers begin together; this spreads them evenly over the interval for good.
    """
    return due_at + interval.total_seconds() * (0.5 + jitter(uid))
