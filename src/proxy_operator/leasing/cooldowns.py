"""Cooldowns: which record is blocked for which target, until when.

The rule: all cooldowns last equally long and start now, so they end in the order they were started.
"""

from datetime import timedelta

from proxy_operator.leasing.group import Record


class Cooldowns:
    """All cooldowns that have not ended, soonest end first."""

    def __init__(self, window: timedelta) -> None:
        self._window = window.total_seconds()
        self._ends: dict[tuple[Record, str], float] = {}
        self._by_target: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def is_known(self, target: str) -> bool:
        """Tell whether any record is in cooldown for the target itself."""
        return target in self._by_target

    def start(self, record: Record, target: str, now: float) -> None:
        """Block a record for a target, anew if it was."""
        if target in record.cooling:
            del self._ends[record, target]
        else:
            self._by_target[target] = self._by_target.get(target, 0) + 1
        record.cooling[target] = self._ends[record, target] = now + self._window

    def end(self, record: Record, target: str) -> bool:
        """Unblock a record. True when it was the last one in cooldown for the target."""
        del self._ends[record, target]
        del record.cooling[target]
        self._by_target[target] -= 1
        if self._by_target[target]:
            return False
        del self._by_target[target]
        return True

    def ended(self, now: float) -> tuple[Record, str] | None:
        """Return one whose time is over, None when there is none."""
        for key, end in self._ends.items():
            return key if end <= now else None
        return None
