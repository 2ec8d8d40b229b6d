"""When and where to create next: pure decisions on the recorded intent."""

from datetime import datetime, timedelta
from typing import Final

from proxy_operator.controllers.proxy.context import Intervals
from proxy_operator.domain.instance import REFUSED, ROTATES, Intent, Outcome

_FIRST_WAIT: Final = timedelta(seconds=30)
_LONGEST_WAIT: Final = timedelta(minutes=30)


def appear_backoff(attempt: int) -> timedelta:
    """Return the wait after that attempt brought no instance: 30 s doubling to 30 m."""
    return min(_FIRST_WAIT * (1 << min(attempt - 1, 10)), _LONGEST_WAIT)


def retry_at(intent: Intent, intervals: Intervals) -> datetime | None:
    """Return the moment before which the same create is not repeated, or None for now."""
    if intent.settled_at is None:
        return None
    if intent.outcome in ROTATES:
        return intent.settled_at + appear_backoff(intent.attempt)
    if intent.outcome is Outcome.QUOTA:
        return intent.retry_at or intent.settled_at + intervals.quota_retry
    return None


def next_zone(placements: tuple[str, ...], intent: Intent | None, spec_hash: str) -> str:
    """Return the zone to create in: the same again, the next after a stock-out, or the first."""
    if intent is None or intent.zone not in placements or intent.spec_hash != spec_hash:
        return placements[0]
    if intent.outcome in ROTATES:
        return placements[(placements.index(intent.zone) + 1) % len(placements)]
    return intent.zone


def next_attempt(intent: Intent | None, spec_hash: str) -> int:
    """Return the number of the next attempt; it grows while no instance comes of them."""
    if intent is None or intent.spec_hash != spec_hash:
        return 1
    return intent.attempt + 1 if intent.outcome in ROTATES else intent.attempt


def may_appear_until(intent: Intent, appears_within: timedelta) -> datetime | None:
    """Return until when an instance of this create may still come into being, or None.

    None also when the provider said that it made nothing.
    """
    if intent.outcome in REFUSED:
        return None
    return intent.created_at + appears_within
