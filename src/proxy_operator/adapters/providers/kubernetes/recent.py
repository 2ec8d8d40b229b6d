"""What was noted lately, and no more of it than a limit.

A rule a visitor must keep: nothing may be wrong, only slower, when it has been forgotten.
"""

from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class Recent(Generic[K, T]):
    """The latest entries, up to so many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: dict[K, T] = {}

    def note(self, key: K, value: T) -> None:
        """Remember a value as the latest; the oldest one goes where there is no room."""
        self._entries.pop(key, None)
        self._entries[key] = value
        if len(self._entries) > self._limit:
            del self._entries[next(iter(self._entries))]

    def take(self, key: K) -> T | None:
        """Return what was noted, if it is still known, and forget it."""
        return self._entries.pop(key, None)

    def __contains__(self, key: K) -> bool:
        return key in self._entries
