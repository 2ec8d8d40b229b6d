"""Verdicts and reports under any sequence of outcomes, clocks and lost notices."""

from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from proxy_operator.domain.condition import ConditionStatus
from proxy_operator.domain.health import ProbeError
from proxy_operator.health.ports import ProbeOutcome
from proxy_operator.health.verdict import (
    Record,
    Thresholds,
    cause_to_report,
    mark,
    observe,
    seed,
)
from tests.unit.health.test_verdict import a_status

MIN_INTERVAL = timedelta(seconds=60)


class Step(NamedTuple):
    """One probe: how long after the one before, what came of it, and whether a notice gets out."""

    after: float
    outcome: ProbeOutcome
    is_accepted: bool


outcomes = st.builds(
    ProbeOutcome,
    error=st.sampled_from([None, None, ProbeError.REFUSED, ProbeError.AUTH, ProbeError.TIMEOUT]),
    detail=st.just("it failed"),
    latency=st.integers(1, 500).map(lambda millis: timedelta(milliseconds=millis)),
)
steps = st.lists(st.builds(Step, st.floats(1, 90), outcomes, st.booleans()), max_size=40)
thresholds_ = st.builds(Thresholds, st.integers(1, 4), st.integers(1, 4))
records = st.sampled_from(
    [
        Record(),
        seed(a_status(ConditionStatus.TRUE, latency=50), 0.0),
        seed(a_status(ConditionStatus.FALSE, "ProbeFailed"), 0.0),
        seed(a_status(ConditionStatus.FALSE, "AuthFailed"), 0.0),
    ]
)


def _expected_verdict(start: bool | None, history: list[bool], limits: Thresholds) -> bool | None:
    """Read the verdict off the whole history, counting nothing along the way."""
    verdict = start
    for end in range(1, len(history) + 1):
        successes = history[max(0, end - limits.success) : end]
        failures = history[max(0, end - limits.failure) : end]
        if len(successes) == limits.success and all(successes):
            verdict = True
        elif len(failures) == limits.failure and not any(failures):
            verdict = False
    return verdict


@given(record=records, limits=thresholds_, sequence=steps)
def test_verdicts_need_full_runs_and_reports_follow_them(
    record: Record, limits: Thresholds, sequence: list[Step]
):
    start = record.verdict
    history: list[bool] = []
    reports: list[tuple[float, bool]] = []
    now = 0.0
    for step in sequence:
        now += step.after
        history.append(step.outcome.error is None)
        record = observe(record, step.outcome, limits)
        assert record.verdict is _expected_verdict(start, history, limits)

        cause = cause_to_report(record, limits, now, MIN_INTERVAL)
        if cause is not None and step.is_accepted:
            assert record.verdict is not None
            record = mark(record, now)
            reports.append((now, record.verdict is True))
            assert cause_to_report(record, limits, now, MIN_INTERVAL) is None
        elif cause is not None:
            assert cause_to_report(record, limits, now, MIN_INTERVAL) is cause
        else:
            # Nothing undelivered is ever taken for delivered.
            marker = record.marker
            assert record.verdict is (None if marker is None else marker.is_healthy)
    for (earlier, was), (later, is_) in pairwise(reports):
        assert was is not is_ or later - earlier >= MIN_INTERVAL.total_seconds()


@given(record=records, limits=thresholds_, outcome=outcomes, count=st.integers(1, 40))
def test_an_unchanging_proxy_is_reported_once(
    record: Record, limits: Thresholds, outcome: ProbeOutcome, count: int
):
    """For its verdict, or for what differs from the one taken over; then never again."""
    reports, now = 0, 0.0
    for _ in range(count):
        now += 30
        record = observe(record, outcome, limits)
        if cause_to_report(record, limits, now, MIN_INTERVAL) is not None:
            record = mark(record, now)
            reports += 1
    assert reports <= 1
