"""What a run of probes says about one proxy, and when that is worth telling.

Pure: outcomes and readings of a monotonic clock go in, new records come out. Keep the two halves
apart: `observe` forms the verdict, `cause_to_report` compares it with what was last reported.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from proxy_operator.domain.condition import ConditionStatus, ConditionType, HealthyReason, find
from proxy_operator.domain.health import HealthReport, ProbeError
from proxy_operator.domain.proxy import ProxyStatus
from proxy_operator.health.ports import ProbeOutcome

LATENCY_FLOOR_MILLIS: Final = 20
LATENCY_SHARE: Final = 0.5
_TOLD_BY_REASON: Final[dict[str, ProbeError]] = {
    HealthyReason.AUTH_FAILED: ProbeError.AUTH,
    HealthyReason.NOT_ALLOWED: ProbeError.NOT_ALLOWED,
}


class Thresholds(NamedTuple):
    """How many probes in a row make a verdict. Both are at least 1."""

    success: int
    failure: int


class Cause(StrEnum):
    """Why a report is due."""

    FIRST = "first verdict"
    FLIP = "verdict flipped"
    ERROR = "another class of error"
    LATENCY = "latency moved"


class Marker(msgspec.Struct, kw_only=True, frozen=True):
    """What the reconciler was last told, or what stood in the condition at the start."""

    is_healthy: bool
    error: ProbeError | None
    """None for a healthy verdict, and for a failure whose class the condition does not tell."""
    latency_millis: int | None
    at: float
    """Reading of the monotonic clock, in seconds."""


class Record(msgspec.Struct, kw_only=True, frozen=True):
    """All the engine remembers of one proxy's probes."""

    verdict: bool | None = None
    """None until a full run of probes agreed."""
    successes: int = 0
    failures: int = 0
    """Probes in a row; one of the two is always 0."""
    error: ProbeError | None = None
    """Class of the last failure."""
    error_run: int = 0
    """Failures in a row of that class."""
    detail: str = ""
    latency_millis: int | None = None
    """Of the last success."""
    marker: Marker | None = None


def seed(status: ProxyStatus, now: float) -> Record:
    """Take the verdict over from a Healthy condition that is True or False; counters start at 0.

    A restart thus neither forgets a fleet's health nor writes anything, and a real change still
    needs a full run. The moment of the seed counts as a report, so that latencies measured on a
    busy start do not cause a wave of writes.
    """
    row = find(status.conditions, ConditionType.HEALTHY)
    if row is None or row.status is ConditionStatus.UNKNOWN:
        return Record()
    is_healthy = row.status is ConditionStatus.TRUE
    error = None if is_healthy else _TOLD_BY_REASON.get(row.reason)
    latency = status.latency_millis if is_healthy else None
    return Record(
        verdict=is_healthy,
        error=error,
        detail="" if is_healthy else row.message,
        latency_millis=latency,
        marker=Marker(is_healthy=is_healthy, error=error, latency_millis=latency, at=now),
    )


def observe(
    record: Record, outcome: ProbeOutcome, thresholds: Thresholds, *, is_held: bool = False
) -> Record:
    """Count one outcome. The verdict, the first one too, changes only at a full threshold run.

    A refusal by the operator's own lists is a verdict at once. While held, a healthy verdict
    stays through any number of failures, which are counted.
    """
    if outcome.error is None:
        successes = record.successes + 1
        return msgspec.structs.replace(
            record,
            verdict=True if successes >= thresholds.success else record.verdict,
            successes=successes,
            failures=0,
            error_run=0,
            latency_millis=whole_millis(outcome.latency),
        )
    failures = record.failures + 1
    is_full = failures >= thresholds.failure or _is_final(outcome.error)
    is_kept = is_held and record.verdict is True
    is_same_error = outcome.error is record.error and record.failures > 0
    return msgspec.structs.replace(
        record,
        verdict=False if is_full and not is_kept else record.verdict,
        successes=0,
        failures=failures,
        error=outcome.error,
        error_run=record.error_run + 1 if is_same_error else 1,
        detail=outcome.detail,
    )


def settle(record: Record, thresholds: Thresholds) -> Record:
    """Draw the conclusion that was held back: unhealthy after a full run of failures."""
    if record.failures < thresholds.failure:
        return record
    return msgspec.structs.replace(record, verdict=False)


def excuse(record: Record) -> Record:
    """Take back the failures counted so far: they were not the proxy's."""
    return msgspec.structs.replace(record, failures=0, error_run=0)


def cause_to_report(
    record: Record, thresholds: Thresholds, now: float, min_interval: timedelta
) -> Cause | None:
    """Tell whether the reconciler must hear of this record, and why. First match wins.

    Asked after every probe. A report that could not be delivered leaves the marker where it was,
    so the next probe finds the same cause again. `now` is in seconds of the monotonic clock.
    """
    if record.verdict is None:
        return None
    marker = record.marker
    if marker is None:
        return Cause.FIRST
    if record.verdict is not marker.is_healthy:
        return Cause.FLIP
    is_due = now - marker.at >= min_interval.total_seconds()
    if record.verdict:
        return Cause.LATENCY if is_due and _has_latency_moved(record, marker) else None
    if _is_final(record.error):
        return Cause.ERROR if record.error is not marker.error else None
    return Cause.ERROR if is_due and _has_error_changed(record, marker, thresholds) else None


def _is_final(error: ProbeError | None) -> bool:
    # What may not be asked is no measurement, which another one could correct.
    return error is ProbeError.NOT_ALLOWED


def _has_latency_moved(record: Record, marker: Marker) -> bool:
    # Only a success measures; a failure on the way down must not repeat an old figure.
    if record.successes == 0 or record.latency_millis is None:
        return False
    if marker.latency_millis is None:
        return True
    allowed = max(LATENCY_FLOOR_MILLIS, LATENCY_SHARE * marker.latency_millis)
    return abs(record.latency_millis - marker.latency_millis) > allowed


def _has_error_changed(record: Record, marker: Marker, thresholds: Thresholds) -> bool:
    # The new class must last for a full run: a proxy that is now refused, now too slow,
    # would otherwise be a status write a minute for ever.
    if record.error_run < thresholds.failure:
        return False
    if marker.error is None:
        return record.error in _TOLD_BY_REASON.values()
    return record.error is not marker.error


def mark(record: Record, now: float) -> Record:
    """Note that the current verdict was reported. Only for a record that has one."""
    if record.verdict is None:
        raise ValueError("there is no verdict to report")
    marker = Marker(
        is_healthy=record.verdict,
        error=None if record.verdict else record.error,
        latency_millis=record.latency_millis if record.verdict else None,
        at=now,
    )
    return msgspec.structs.replace(record, marker=marker)


def report_of(record: Record, checked_at: datetime) -> HealthReport:
    """Put the verdict into the words of the reconciler. Only for a record that has one."""
    if record.verdict is None:
        raise ValueError("there is no verdict to report")
    if record.verdict:
        return HealthReport(
            is_healthy=True, latency_millis=record.latency_millis, checked_at=checked_at
        )
    return HealthReport(
        is_healthy=False, error=record.error, detail=record.detail, checked_at=checked_at
    )


def whole_millis(span: timedelta) -> int:
    """Round to milliseconds; a success is never 0, which would read as not measured."""
    return max(1, round(span / timedelta(milliseconds=1)))
