"""A priority queue whose members change their keys all the time, repaired where it is looked at.

The rule: every member that has a key is held under a key not greater than its current one. So a key
that rises, or vanishes, costs nothing until its entry surfaces; a key that falls, or appears, must
be announced by `lower` at once.
"""

from collections.abc import Callable, Generator, Hashable, Iterable
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, Final, Generic, TypeVar

Key = tuple[Any, ...]
"""Compared as a tuple; ends in the member (or its owners), after parts that make it unique."""

M = TypeVar("M", bound=Hashable)

_SLACK: Final = 64


class Frontier(Generic[M]):
    """Members by their smallest key. `owner` is where in a key its member is found.

    Keys from the horizon on are none of its business; None is no horizon.
    """

    __slots__ = ("_bound", "_heap", "_held", "_owner", "horizon")

    def __init__(
        self,
        owner: int,
        bound: Callable[[M], Key | None],
        members: Iterable[M] = (),
        horizon: Key | None = None,
    ) -> None:
        """`bound` returns the current key of a member, None when it has none now."""
        self._owner = owner
        self._bound = bound
        self.horizon = horizon
        self._held: dict[M, Key] = {}
        for member in members:
            key = bound(member)
            if key is not None:
                self._held[member] = key
        self._heap = [*self._held.values()]
        heapify(self._heap)

    def __len__(self) -> int:
        """Return the number of entries, stale ones included: what it costs in memory."""
        return len(self._heap)

    def lower(self, member: M, key: Key) -> None:
        """Announce that the member's key may now be as small as `key`."""
        held = self._held.get(member)
        if held is not None and held <= key:
            return
        if self.horizon is not None and key >= self.horizon:
            return
        self._held[member] = key
        heappush(self._heap, key)
        if len(self._heap) > 2 * len(self._held) + _SLACK:
            self._trim()

    def discard(self, member: M) -> None:
        """Forget a member."""
        if self._held.pop(member, None) is not None and (
            len(self._heap) > 2 * len(self._held) + _SLACK
        ):
            self._trim()

    def first(self) -> Key | None:
        """Return the smallest current key before the horizon, None when no member has one."""
        heap, held, owner, bound = self._heap, self._held, self._owner, self._bound
        while heap:
            key = heap[0]
            member = key[owner]
            if held.get(member) is not key:
                heappop(heap)
                continue
            current = bound(member)
            if current is None:
                heappop(heap)
                del held[member]
            elif current is key or current == key:
                heap[0] = held[member] = current
                return current if self.horizon is None or current < self.horizon else None
            else:
                held[member] = current
                heapreplace(heap, current)
        return None

    def walk(self) -> Generator[Key, None, None]:
        """Yield the current keys, smallest first. No key may change before it is closed."""
        aside: list[Key] = []
        try:
            while (key := self.first()) is not None:
                heappop(self._heap)
                if not aside or key is not aside[-1]:
                    aside.append(key)
                    yield key
        finally:
            for key in aside:
                heappush(self._heap, key)

    def _trim(self) -> None:
        """Drop superseded entries, now that they outnumber the live ones: amortised O(1)."""
        self._heap = [*self._held.values()]
        heapify(self._heap)
