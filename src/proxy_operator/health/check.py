"""A proxy's `healthCheck` block, read: durations as durations, thresholds together."""

from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple

from proxy_operator.domain.duration import parse_duration
from proxy_operator.domain.proxy import HealthCheck
from proxy_operator.health.verdict import Thresholds


class Check(NamedTuple):
    """How one proxy is probed."""

    interval: timedelta
    timeout: timedelta
    expected_status: int | None
    thresholds: Thresholds


@lru_cache(maxsize=4096)
def read_check(block: HealthCheck) -> Check:
    """Read the block. ValueError when a duration is none; admission lets no such object in."""
    return Check(
        interval=parse_duration(block.interval),
        timeout=parse_duration(block.timeout),
        expected_status=block.expected_status,
        thresholds=Thresholds(block.success_threshold, block.failure_threshold),
    )
