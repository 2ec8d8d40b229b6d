"""No call of a provider outlasts its limit."""

import asyncio
from datetime import timedelta

import pytest

from proxy_operator.provisioning.errors import QuotaExceededError, TransientProviderError
from proxy_operator.provisioning.timed import TimedProvider
from proxy_operator.testing.fake_provider import FakeProvider
from tests.builders import a_clock, a_create_request

pytestmark = pytest.mark.looptime(start=0)


@pytest.fixture
def fake() -> FakeProvider:
    return FakeProvider(a_clock())


@pytest.fixture
def provider(fake: FakeProvider) -> TimedProvider:
    return TimedProvider(fake, timedelta(seconds=90))


@pytest.mark.parametrize("op", ["check", "create", "get", "delete", "list_by_tag"])
async def test_a_call_that_hangs_becomes_transient(
    provider: TimedProvider, fake: FakeProvider, op: str
):
    fake.latency = timedelta(hours=1)
    calls = {
        "check": lambda: provider.check(a_create_request()),
        "create": lambda: provider.create(a_create_request()),
        "get": lambda: provider.get("instances/x"),
        "delete": lambda: provider.delete("instances/x"),
        "list_by_tag": provider.list_by_tag,
    }
    with pytest.raises(TransientProviderError, match=f"did not answer {op} within 1m30s"):
        await calls[op]()
    assert asyncio.get_running_loop().time() == pytest.approx(90)


async def test_a_call_in_time_passes_through(provider: TimedProvider, fake: FakeProvider):
    fake.latency = timedelta(seconds=89)
    provider_id = await provider.create(a_create_request())
    assert list(fake.instances) == [provider_id]
    assert (await provider.get(provider_id)).provider_id == provider_id
    await provider.delete(provider_id)
    assert (await provider.list_by_tag()).items == ()


async def test_the_errors_of_the_provider_stay_what_they_are(
    provider: TimedProvider, fake: FakeProvider
):
    fake.fail("create", QuotaExceededError("no more"))
    with pytest.raises(QuotaExceededError, match="no more"):
        await provider.create(a_create_request())
    fake.fail("get", TimeoutError("its own"))
    with pytest.raises(TimeoutError, match="its own"):
        await provider.get("instances/x")


async def test_being_cancelled_is_not_a_timeout(provider: TimedProvider, fake: FakeProvider):
    fake.latency = timedelta(hours=1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await provider.list_by_tag()


async def test_facts_pass_through(provider: TimedProvider, fake: FakeProvider):
    assert provider.appears_within == fake.appears_within
    assert provider.placements(a_create_request().spec) == ("",)
    assert provider.provider_id(namespace="ns", name="n", zone="") == "instances/n"
