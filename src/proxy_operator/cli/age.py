"""Ages and spans in kubectl's short form: `45s`, `5m3s`, `3h12m`, `2d`."""

import math
from datetime import datetime, timedelta
from typing import Final

_SECOND: Final = ("s", 1)
_MINUTE: Final = ("m", 60)
_HOUR: Final = ("h", 3600)
_DAY: Final = ("d", 86400)
_YEAR: Final = ("y", 365 * 86400)

# Below so many seconds: the unit, and the smaller one beside it.
_STEPS: Final = (
    (120, _SECOND, None),
    (600, _MINUTE, _SECOND),
    (3 * 3600, _MINUTE, None),
    (8 * 3600, _HOUR, _MINUTE),
    (48 * 3600, _HOUR, None),
    (8 * 86400, _DAY, _HOUR),
    (2 * 365 * 86400, _DAY, None),
    (8 * 365 * 86400, _YEAR, _DAY),
    (math.inf, _YEAR, None),
)


def format_age(since: datetime | None, now: datetime) -> str:
    """Return how long ago something happened; `<unknown>` when nobody knows."""
    return "<unknown>" if since is None else format_span(now - since)


def format_span(span: timedelta) -> str:
    """Write a span as kubectl does (k8s.io/apimachinery duration.HumanDuration)."""
    seconds = max(int(span.total_seconds()), 0)
    (unit, size), smaller = next((big, small) for limit, big, small in _STEPS if seconds < limit)
    text = f"{seconds // size}{unit}"
    rest = seconds % size // smaller[1] if smaller else 0
    return f"{text}{rest}{smaller[0]}" if smaller and rest else text
