"""When leases end: the active claims, soonest end first.

The rule: a claim's live entry is the one that the claim names. An entry left behind by a renewal,
or by an early end, is skipped when it surfaces.
"""

from heapq import heapify, heappop, heappush
from typing import Final

from proxy_operator.leasing.shape import Claim, Expiry

_SLACK: Final = 64


class Expiries:
    """The ends of the active claims."""

    __slots__ = ("_heap", "_most")

    def __init__(self) -> None:
        self._heap: list[Expiry] = []
        self._most = _SLACK

    def __len__(self) -> int:
        """Return the number of entries, stale ones included: what it costs in memory."""
        return len(self._heap)

    def expect(self, claim: Claim) -> None:
        """Take in a claim, or its new end."""
        claim.expiry = entry = (claim.expires, claim.serial, claim)
        heappush(self._heap, entry)
        if len(self._heap) > self._most:
            self._trim()

    def first(self) -> Expiry | None:
        """Return the entry that ends soonest, None when no claim is held."""
        heap = self._heap
        while heap:
            entry = heap[0]
            if entry[2].expiry is entry:
                return entry
            heappop(heap)
        return None

    def _trim(self) -> None:
        """Drop the stale entries, and look again once there are twice as many: amortised O(1)."""
        self._heap = [entry for entry in self._heap if entry[2].expiry is entry]
        heapify(self._heap)
        self._most = 2 * len(self._heap) + _SLACK
