"""One at a time tries a place that had none left, later each time it fails."""

import asyncio

import pytest

from proxy_operator.adapters.providers.gcp.breaker import Breaker, Place
from proxy_operator.provisioning.errors import QuotaExceededError, StockOutError
from tests.builders import a_clock

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

PLACE = Place("a", "e2-micro")
OUT = StockOutError("none left")


def is_open(breaker: Breaker, name: str = "x") -> bool:
    return breaker.refusal(PLACE, name) is None


async def test_holds_double_up_to_half_an_hour():
    breaker = Breaker(a_clock())
    for hold in (30, 60, 120, 240, 480, 960, 1800, 1800):
        breaker.failed(PLACE, OUT)
        await asyncio.sleep(hold - 1)
        assert not is_open(breaker)
        await asyncio.sleep(1)
        assert is_open(breaker)


async def test_failures_of_creates_sent_together_are_one():
    breaker = Breaker(a_clock())
    for _ in range(50):
        breaker.failed(PLACE, OUT)
    await asyncio.sleep(30)
    assert is_open(breaker)


async def test_a_probe_that_says_nothing_gives_way_after_a_while():
    breaker = Breaker(a_clock())
    breaker.failed(PLACE, OUT)
    await asyncio.sleep(30)
    breaker.admit(PLACE, "first")
    assert is_open(breaker, "first")
    assert not is_open(breaker, "second")
    await asyncio.sleep(300)
    assert is_open(breaker, "second")


async def test_a_probe_that_was_not_one_gives_way_at_once():
    breaker = Breaker(a_clock())
    breaker.failed(PLACE, OUT)
    await asyncio.sleep(30)
    breaker.admit(PLACE, "first")
    breaker.leave(PLACE, "somebody")
    assert not is_open(breaker, "second")
    breaker.leave(PLACE, "first")
    assert is_open(breaker, "second")


async def test_an_instance_from_before_the_failure_proves_nothing():
    breaker = Breaker(a_clock())
    await asyncio.sleep(10)
    breaker.failed(PLACE, OUT)
    breaker.ran(PLACE, accepted_at=5)
    assert not is_open(breaker)
    breaker.ran(PLACE, accepted_at=40)
    assert is_open(breaker)


async def test_the_refusal_is_of_the_kind_of_the_failure_and_reads_the_same():
    breaker = Breaker(a_clock())
    breaker.failed(PLACE, OUT)
    first = breaker.refusal(PLACE, "x")
    assert type(first) is StockOutError
    await asyncio.sleep(7)
    assert str(breaker.refusal(PLACE, "y")) == str(first)
    breaker.failed(PLACE, QuotaExceededError("enough"))
    assert type(breaker.refusal(PLACE, "x")) is QuotaExceededError


async def test_an_hour_of_failing_is_few_tries():
    breaker, tries = Breaker(a_clock()), 0
    for _ in range(3600 // 5):
        if is_open(breaker):
            breaker.admit(PLACE, f"p{tries}")
            breaker.failed(PLACE, OUT)
            tries += 1
        await asyncio.sleep(5)
    assert tries <= 10
