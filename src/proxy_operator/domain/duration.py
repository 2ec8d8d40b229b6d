"""Durations as people and Kubernetes write them: `90s`, `5m`, `1h30m`, `250ms`.

One grammar for manifests, flags and environment variables.
"""

import re
from datetime import timedelta
from typing import Final

PATTERN: Final = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_WHOLE: Final = re.compile(PATTERN)
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> timedelta:
    """Read a duration; ValueError says what a right one looks like."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a duration: write a number and a unit, such as 90s or 5m"
        )
    try:
        return timedelta(
            seconds=sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(text))
        )
    except OverflowError as err:
        raise ValueError(f"{text!r} is too long a duration") from err


def format_duration(span: timedelta) -> str:
    """Write a duration in the fewest units: 90 s is `1m30s`, 300 s is `5m`; -90 s is `-1m30s`."""
    millis = abs(round(span.total_seconds() * 1000))
    parts: list[str] = ["-"] if millis and span < timedelta(0) else []
    for size, unit in ((3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")):
        count, millis = divmod(millis, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
