"""When, where and as what to create next: decisions on the recorded intent, without I/O."""

import uuid
from datetime import datetime, timedelta
from typing import Final

from proxy_operator.controllers.proxy.context import Intervals
from proxy_operator.domain.instance import ROTATES, SETTLED, Intent, Outcome

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


def unsettled_at(
    intent: Intent, appears_within: timedelta, now: datetime, *, has_appeared: bool = False
) -> datetime | None:
    """Return when the last create was sent of which an instance may still come, or None.

    None when the provider said that it made nothing, or its instance was seen
    (`has_appeared`), or it was sent longer ago than a create may take.
    """
    sent = [] if intent.unsettled_at is None else [intent.unsettled_at]
    if intent.outcome not in SETTLED and not has_appeared:
        sent.append(intent.created_at)
    return max((at for at in sent if now < at + appears_within), default=None)


def request_id_of(
    intent: Intent | None, zone: str, spec_hash: str, now: datetime, appears_within: timedelta
) -> str:
    """Return the request id to send a create with.

    That of a create which got no answer, so that whoever knows it makes nothing twice; only for
    as long as that create may still take effect. Else a fresh one.
    """
    if (
        intent is not None
        and intent.request_id
        and intent.outcome is Outcome.UNKNOWN
        and (intent.zone, intent.spec_hash) == (zone, spec_hash)
        and now < intent.created_at + appears_within
    ):
        return intent.request_id
    return str(uuid.uuid4())
