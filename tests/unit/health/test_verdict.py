from datetime import timedelta

import pytest

from proxy_operator.domain.condition import ConditionStatus, ConditionType, with_condition
from proxy_operator.domain.health import HealthReport, ProbeError
from proxy_operator.domain.proxy import ProxyStatus
from proxy_operator.health.ports import ProbeOutcome
from proxy_operator.health.verdict import (
    Cause,
    Marker,
    Record,
    Thresholds,
    cause_to_report,
    excuse,
    mark,
    observe,
    report_of,
    seed,
    settle,
    whole_millis,
)
from tests.builders import EPOCH
from tests.unit.health.fakes import failed, ok

MINUTE = timedelta(seconds=60)
USUAL = Thresholds(success=1, failure=3)


def a_status(
    status: ConditionStatus, reason: str = "ProbeSucceeded", *, latency: int | None = None
) -> ProxyStatus:
    rows = with_condition(
        (),
        ConditionType.HEALTHY,
        status=status,
        reason=reason,
        message="why",
        observed_generation=1,
        now=EPOCH,
    )
    return ProxyStatus(conditions=rows, latency_millis=latency)


def after(record: Record, *outcomes: ProbeOutcome, thresholds: Thresholds = USUAL) -> Record:
    for outcome in outcomes:
        record = observe(record, outcome, thresholds)
    return record


def reported(is_healthy: bool, error: ProbeError | None = None, latency: int | None = 100):
    """A record whose verdict was reported at moment 0."""
    return Record(
        verdict=is_healthy,
        error=error,
        latency_millis=latency,
        marker=Marker(
            is_healthy=is_healthy,
            error=error,
            latency_millis=latency if is_healthy else None,
            at=0.0,
        ),
    )


@pytest.mark.parametrize(
    ("start", "outcomes", "thresholds", "verdict"),
    [
        (None, [ok()], (1, 3), True),
        (None, [ok()], (2, 3), None),
        (None, [ok(), ok()], (2, 3), True),
        (None, [failed()] * 2, (1, 3), None),
        (None, [failed()] * 3, (1, 3), False),
        (None, [failed(), failed(), ok(), failed()], (2, 3), None),
        (True, [failed()] * 2, (1, 3), True),
        (True, [failed()] * 3, (1, 3), False),
        (True, [failed(), failed(), ok(), failed(), failed()], (1, 3), True),
        (True, [failed()], (1, 1), False),
        (True, [failed(ProbeError.AUTH)], (1, 3), True),
        (True, [failed(ProbeError.AUTH), failed(), failed(ProbeError.TLS)], (1, 3), False),
        (False, [ok()], (1, 3), True),
        (False, [ok(), failed(), ok()], (2, 3), False),
    ],
)
def test_a_verdict_needs_a_full_run(start, outcomes, thresholds, verdict):
    record = after(Record(verdict=start), *outcomes, thresholds=Thresholds(*thresholds))
    assert record.verdict is verdict


@pytest.mark.parametrize(
    ("start", "verdict"), [(True, True), (None, False), (False, False)], ids=["well", "new", "bad"]
)
def test_only_a_healthy_verdict_is_held(start, verdict):
    record = Record(verdict=start)
    for _ in range(5):
        record = observe(record, failed(), USUAL, is_held=True)
    assert record.verdict is verdict
    assert record.failures == 5


def test_a_success_counts_while_held():
    record = observe(Record(verdict=False), ok(), USUAL, is_held=True)
    assert record.verdict is True


@pytest.mark.parametrize(("failures", "verdict"), [(2, True), (3, False), (9, False)])
def test_what_was_held_back_is_concluded_after_a_full_run(failures, verdict):
    record = Record(verdict=True, failures=failures)
    assert settle(record, USUAL).verdict is verdict


def test_an_excused_proxy_may_fail_a_full_run_again():
    record = Record(verdict=True, failures=7, error=ProbeError.STATUS, error_run=7)
    assert after(excuse(record), *[failed()] * 2).verdict is True
    assert after(excuse(record), *[failed()] * 3).verdict is False


@pytest.mark.parametrize(
    ("record", "outcomes", "now", "cause"),
    [
        # no verdict, no report
        (Record(), [failed()] * 2, 1, None),
        # first verdicts and flips do not wait
        (Record(), [ok()], 1, Cause.FIRST),
        (Record(), [failed()] * 3, 1, Cause.FIRST),
        (reported(True), [failed()] * 3, 1, Cause.FLIP),
        (reported(False, ProbeError.TLS), [ok()], 1, Cause.FLIP),
        (reported(True), [failed()] * 2, 1000, None),
        # latency: more than 20 ms and more than half of what was reported, once a minute
        (reported(True, latency=100), [ok(150)], 60, None),
        (reported(True, latency=100), [ok(151)], 60, Cause.LATENCY),
        (reported(True, latency=100), [ok(49)], 60, Cause.LATENCY),
        (reported(True, latency=100), [ok(151)], 59.9, None),
        (reported(True, latency=10), [ok(30)], 60, None),
        (reported(True, latency=10), [ok(31)], 60, Cause.LATENCY),
        (reported(True, latency=40), [ok(61)], 60, Cause.LATENCY),
        (reported(True, latency=None), [ok(1)], 60, Cause.LATENCY),
        # latency only while healthy, and only when just measured
        (reported(True, latency=100), [ok(500), failed()], 60, None),
        # another class of error must last a whole run
        (reported(False, ProbeError.REFUSED), [failed(ProbeError.AUTH)] * 2, 60, None),
        (reported(False, ProbeError.REFUSED), [failed(ProbeError.AUTH)] * 3, 60, Cause.ERROR),
        (reported(False, ProbeError.REFUSED), [failed(ProbeError.AUTH)] * 3, 59.9, None),
        (
            reported(False, ProbeError.REFUSED),
            [failed(ProbeError.AUTH), failed(ProbeError.TLS)] * 3,
            60,
            None,
        ),
        (reported(False, ProbeError.AUTH), [failed(ProbeError.AUTH)] * 9, 600, None),
        # a failure taken over without its class: only AuthFailed tells itself apart
        (reported(False, None), [failed(ProbeError.TIMEOUT)] * 9, 600, None),
        (reported(False, None), [failed(ProbeError.AUTH)] * 3, 600, Cause.ERROR),
        # a refusal of our own is no measurement: one is enough, and it does not wait
        (Record(), [failed(ProbeError.NOT_ALLOWED)], 1, Cause.FIRST),
        (reported(True), [failed(ProbeError.NOT_ALLOWED)], 1, Cause.FLIP),
        (reported(False, None), [failed(ProbeError.NOT_ALLOWED)], 1, Cause.ERROR),
        (reported(False, ProbeError.TLS), [failed(ProbeError.NOT_ALLOWED)], 1, Cause.ERROR),
        (reported(False, ProbeError.NOT_ALLOWED), [failed(ProbeError.NOT_ALLOWED)], 600, None),
        (reported(False, ProbeError.NOT_ALLOWED), [failed(ProbeError.TLS)] * 3, 59.9, None),
        (reported(False, ProbeError.NOT_ALLOWED), [failed(ProbeError.TLS)] * 3, 60, Cause.ERROR),
    ],
)
def test_when_a_report_is_due(record, outcomes, now, cause):
    assert cause_to_report(after(record, *outcomes), USUAL, now, MINUTE) is cause


def test_latency_is_not_reported_while_a_recovery_is_not_complete():
    slow_to_trust = Thresholds(success=3, failure=3)
    record = after(reported(False, ProbeError.TLS), ok(5), ok(900), thresholds=slow_to_trust)
    assert cause_to_report(record, slow_to_trust, 1000, MINUTE) is None


def test_a_report_that_got_out_is_not_due_again():
    record = after(Record(), *[failed(ProbeError.AUTH)] * 3)
    assert cause_to_report(mark(record, 5.0), USUAL, 5.0, MINUTE) is None
    assert mark(record, 5.0).marker == Marker(
        is_healthy=False, error=ProbeError.AUTH, latency_millis=None, at=5.0
    )


@pytest.mark.parametrize(
    ("status", "verdict", "error"),
    [
        (a_status(ConditionStatus.TRUE, latency=70), True, None),
        (a_status(ConditionStatus.FALSE, "ProbeFailed"), False, None),
        (a_status(ConditionStatus.FALSE, "AuthFailed"), False, ProbeError.AUTH),
        (a_status(ConditionStatus.FALSE, "NotAllowed"), False, ProbeError.NOT_ALLOWED),
    ],
)
def test_a_judged_condition_is_taken_over(status, verdict, error):
    record = seed(status, 7.0)
    assert record.verdict is verdict
    assert (record.successes, record.failures) == (0, 0)
    assert record.marker is not None
    assert record.marker.error is error
    assert record.marker.at == 7.0


@pytest.mark.parametrize("status", [a_status(ConditionStatus.UNKNOWN, "NotProvisioned"), None])
def test_an_unjudged_condition_is_not_taken_over(status):
    assert seed(status or ProxyStatus(), 7.0) == Record()


def test_what_a_report_says():
    record = after(Record(), ok(41.6))
    assert report_of(record, EPOCH) == HealthReport(
        is_healthy=True, latency_millis=42, checked_at=EPOCH
    )
    record = after(record, *[failed(ProbeError.AUTH, "the proxy asks")] * 3)
    assert report_of(record, EPOCH) == HealthReport(
        is_healthy=False, error=ProbeError.AUTH, detail="the proxy asks", checked_at=EPOCH
    )


def test_without_a_verdict_there_is_nothing_to_say():
    with pytest.raises(ValueError, match="no verdict"):
        report_of(Record(), EPOCH)
    with pytest.raises(ValueError, match="no verdict"):
        mark(Record(), 0.0)


@pytest.mark.parametrize(("micros", "millis"), [(0, 1), (400, 1), (1_600, 2), (5_000_000, 5000)])
def test_a_measured_latency_is_never_zero(micros, millis):
    assert whole_millis(timedelta(microseconds=micros)) == millis
