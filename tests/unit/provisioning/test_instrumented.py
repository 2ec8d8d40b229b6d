"""Every call is counted once, with its outcome and its time, and passes through unchanged."""

import asyncio
import inspect
from datetime import timedelta

import pytest

from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    OwnLimit,
    OwnLimitError,
    PermanentProviderError,
    QuotaExceededError,
    StockOutError,
    TransientProviderError,
)
from proxy_operator.provisioning.instrumented import OPERATIONS, InstrumentedProvider
from proxy_operator.testing.fake_provider import FakeProvider
from tests.builders import a_clock, a_create_request

pytestmark = pytest.mark.looptime(start=0)


class Calls:
    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, float]] = []
        self.served: list[str] = []
        self.limits: list[tuple[str, str]] = []

    def provider_served(self, provider: str) -> None:
        self.served.append(provider)

    def provider_called(self, provider: str, op: str, result: str, seconds: float) -> None:
        self.rows.append((provider, op, result, round(seconds, 6)))

    def limit_reached(self, provider: str, limit: str) -> None:
        self.limits.append((provider, limit))


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def fake() -> FakeProvider:
    fake = FakeProvider(a_clock())
    fake.latency = timedelta(seconds=2)
    return fake


@pytest.fixture
def provider(fake: FakeProvider, calls: Calls) -> InstrumentedProvider:
    return InstrumentedProvider(fake, "cloud", calls, a_clock())


def test_a_provider_is_known_before_its_first_call(provider: InstrumentedProvider, calls: Calls):
    assert (calls.served, calls.rows) == (["cloud"], [])


def test_the_operations_are_the_calls_of_the_contract():
    found = {name for name, value in vars(Provider).items() if inspect.iscoroutinefunction(value)}
    assert found == {*OPERATIONS}


async def test_a_refusal_by_the_own_limit_is_counted_by_the_limit(
    provider: InstrumentedProvider, fake: FakeProvider, calls: Calls
):
    fake.fail("create", OwnLimitError(OwnLimit.MAX_CREATES_PER_MINUTE, 3))
    with pytest.raises(OwnLimitError, match="--max-creates-per-minute=3 is reached"):
        await provider.create(a_create_request())
    fake.fail("create", QuotaExceededError("the provider's own"))
    with pytest.raises(QuotaExceededError):
        await provider.create(a_create_request())
    assert calls.limits == [("cloud", "max_creates_per_minute")]
    assert [result for _, _, result, _ in calls.rows] == ["own_limit", "quota"]


async def test_calls_pass_through_and_are_counted(
    provider: InstrumentedProvider, fake: FakeProvider, calls: Calls
):
    request = a_create_request()
    await provider.check(request)
    provider_id = await provider.create(request)
    assert (await provider.get(provider_id)).labels == request.labels
    assert len((await provider.list_by_tag()).items) == 1
    await provider.delete(provider_id)
    assert fake.instances == {}
    assert calls.rows == [
        ("cloud", op, "success", 2.0) for op in ("check", "create", "get", "list_by_tag", "delete")
    ]


async def test_facts_that_need_no_call_are_not_counted(
    provider: InstrumentedProvider, fake: FakeProvider, calls: Calls
):
    request = a_create_request()
    assert provider.appears_within == fake.appears_within
    assert provider.placements(request.spec) == fake.placements(request.spec)
    assert provider.provider_id(namespace="ns", name="n", zone="z") == "zones/z/instances/n"
    assert calls.rows == []


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (InstanceNotFoundError("x"), "not_found"),
        (QuotaExceededError("x"), "quota"),
        (StockOutError("x"), "quota"),
        (OwnLimitError(OwnLimit.MAX_INSTANCES, 1), "own_limit"),
        (PermanentProviderError("x"), "permanent"),
        (EnvironmentProviderError("x"), "permanent"),
        (TransientProviderError("x"), "transient"),
        (ZeroDivisionError("a defect"), "transient"),
    ],
)
async def test_an_error_is_counted_by_its_class_and_raised_as_it_is(
    provider: InstrumentedProvider,
    fake: FakeProvider,
    calls: Calls,
    error: Exception,
    result: str,
):
    fake.fail("get", error)
    with pytest.raises(type(error)) as raised:
        await provider.get("instances/x")
    assert raised.value is error
    assert calls.rows == [("cloud", "get", result, 2.0)]


async def test_a_call_that_is_cut_off_is_counted_as_transient(
    provider: InstrumentedProvider, calls: Calls
):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await provider.list_by_tag()
    assert calls.rows == [("cloud", "list_by_tag", "transient", 1.0)]
