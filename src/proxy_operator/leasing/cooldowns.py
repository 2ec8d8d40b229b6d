"""Cooldowns: which record is blocked for which target, until when.

The rule: all cooldowns last equally long and start now, so they end in the order they were started.
"""

from collections.abc import Container
from datetime import timedelta
from math import inf

from proxy_operator.leasing.group import EVERYBODY
from proxy_operator.leasing.shape import Record, Shape, State


class Cooldowns:
    """All cooldowns that have not ended, soonest end first."""

    def __init__(self, window: timedelta) -> None:
        self._window = window.total_seconds()
        self._ends: dict[tuple[Record, str], float] = {}
        self._by_target: dict[str, dict[Record, float]] = {}

    def is_known(self, target: str) -> bool:
        """Tell whether any record is in cooldown for the target itself."""
        return target in self._by_target

    def start(self, record: Record, target: str, now: float) -> None:
        """Block a record for a target, anew if it was."""
        if target in record.cooling:
            self.end(record, target)
        end = now + self._window
        record.cooling[target] = self._ends[record, target] = end
        self._by_target.setdefault(target, {})[record] = end

    def end(self, record: Record, target: str) -> bool:
        """Unblock a record. True when it was the last one in cooldown for the target."""
        del self._ends[record, target]
        del record.cooling[target]
        records = self._by_target[target]
        del records[record]
        if records:
            return False
        del self._by_target[target]
        return True

    def next_end(self) -> float:
        """Return when the next one ends, infinite when there is none."""
        return next(iter(self._ends.values()), inf)

    def ended(self, now: float) -> tuple[Record, str] | None:
        """Return one whose time is over, None when there is none."""
        return next(iter(self._ends)) if self.next_end() <= now else None

    def first_end(self, target: str, shapes: Container[Shape | None], before: float) -> float:
        """Return when the first record of these shapes that only cooldowns block is free again.

        Moments from `before` on are of no interest: `before` is returned then.
        """
        soonest = before
        for blocked_for in {EVERYBODY, target}:
            for record, end in self._by_target.get(blocked_for, {}).items():
                if end >= soonest:
                    break
                if record.state is State.OPEN and record.shape in shapes:
                    soonest = min(soonest, record.cooled_until(target))
        return soonest
