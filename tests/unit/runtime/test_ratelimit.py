from datetime import timedelta

import pytest

from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.ratelimit import (
    ExponentialBackoff,
    MaxOf,
    RateLimiter,
    TokenBucket,
    default_limiter,
    jittered,
)

A = ObjectKey("default", "a")
B = ObjectKey("default", "b")


def seconds(limiter: RateLimiter, key: ObjectKey, now: float = 0.0) -> float:
    return limiter.when(key, now).total_seconds()


def test_backoff_doubles_from_5_ms_and_stays_at_5_minutes():
    limiter = ExponentialBackoff()
    waits = [seconds(limiter, A) for _ in range(2000)]
    assert waits[:5] == [0.005, 0.01, 0.02, 0.04, 0.08]
    assert waits[15] == pytest.approx(163.84)
    assert set(waits[16:]) == {300.0}


def test_backoff_is_kept_per_key_and_forgotten_per_key():
    limiter = ExponentialBackoff()
    for _ in range(3):
        limiter.when(A, 0.0)
    assert seconds(limiter, B) == 0.005
    assert (limiter.num_requeues(A), limiter.num_requeues(B)) == (3, 1)
    limiter.forget(A)
    assert (limiter.num_requeues(A), limiter.num_requeues(B)) == (0, 1)
    assert seconds(limiter, A) == 0.005
    limiter.forget(ObjectKey("default", "unknown"))


def test_bucket_lets_a_burst_through_then_spaces_tries_out():
    bucket = TokenBucket(rate=10, burst=100)
    assert {seconds(bucket, A) for _ in range(100)} == {0.0}
    assert [seconds(bucket, B) for _ in range(3)] == pytest.approx([0.1, 0.2, 0.3])


def test_bucket_refills_with_time_but_never_over_its_burst():
    bucket = TokenBucket(rate=10, burst=2)
    for _ in range(2):
        bucket.when(A, 0.0)
    assert seconds(bucket, A, now=0.1) == 0.0
    assert seconds(bucket, A, now=0.1) == pytest.approx(0.1)
    assert [seconds(bucket, A, now=3600.0) for _ in range(3)] == pytest.approx([0.0, 0.0, 0.1])


def test_bucket_survives_a_clock_that_stands_or_steps_back():
    bucket = TokenBucket(rate=10, burst=1)
    bucket.when(A, 10.0)
    assert seconds(bucket, A, now=5.0) == pytest.approx(0.1)


def test_longest_of_both_waits_counts():
    limiter = MaxOf((ExponentialBackoff(base=timedelta(seconds=1)), TokenBucket(rate=1, burst=1)))
    assert seconds(limiter, A) == 1.0
    assert seconds(limiter, B) == 1.0
    assert seconds(limiter, A) == 2.0
    assert seconds(limiter, ObjectKey("default", "c")) == pytest.approx(3.0)
    assert limiter.num_requeues(A) == 2
    limiter.forget(A)
    assert limiter.num_requeues(A) == 0


def test_default_limiter_keeps_a_failing_fleet_at_ten_tries_a_second():
    limiter = default_limiter()
    waits = [seconds(limiter, ObjectKey("default", str(i))) for i in range(1100)]
    assert waits[-1] == pytest.approx(100.0)


def test_jitter_spreads_over_the_upper_half_of_the_doubled_wait():
    waits = {
        jittered(3, timedelta(seconds=1), timedelta(seconds=30)).total_seconds() for _ in range(200)
    }
    assert min(waits) >= 4.0
    assert max(waits) <= 8.0
    assert len(waits) > 100
    assert jittered(10**6, timedelta(seconds=1), timedelta(seconds=30)) <= timedelta(seconds=30)
